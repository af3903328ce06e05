// The last warnings and errors of the service: those from before the page was opened by REST, the
// others by STOMP.

import type { Broker } from '../link/broker';
import { atNextFrame } from '../link/frame';
import type { Rest } from '../link/rest';
import { parseJson } from '../model/json';
import type { LogEvent, LogMessage } from '../model/types';

/** Log events kept; the log of the service has all of them. */
export const LOG_MAX = 1_000;

export interface LogRow extends LogEvent {
  /** Id within this page, for lists. */
  id: number;
}

export class LogStore {
  /** Newest first. */
  rows: LogRow[] = $state.raw([]);
  /** Errors since the user last opened the log. */
  unseen = $state(0);
  private pending: LogRow[] = [];
  private next = 1;
  /** Time of the newest event that the user has cleared, in nanoseconds. */
  private clearedTs = 0n;

  constructor(
    private readonly rest: Rest,
    broker: Broker,
  ) {
    broker.listen('log-event.*', (_, body) => this.handle(parseJson(body) as LogMessage));
  }

  /** Fetches the events that the page has missed: those before it was opened or connected again. */
  async restart(): Promise<void> {
    let past: LogEvent[];
    try {
      past = await this.rest.get<LogEvent[]>('/rest/ext/log');
    } catch {
      // The header shows a lost connection. An earlier version of the service keeps no events.
      return;
    }
    const known = new Set([...this.rows, ...this.pending].map(keyOf));
    const missed = past.filter((event) => !known.has(keyOf(event)) && BigInt(event.ts) > this.clearedTs);
    const rows = [...this.rows, ...missed.map((event) => ({ ...event, id: this.next++ }))];
    this.rows = rows.sort((a, b) => (BigInt(a.ts) < BigInt(b.ts) ? 1 : -1)).slice(0, LOG_MAX);
  }

  handle({ ts, level, logger, message, fields }: LogMessage): void {
    this.pending.push({ ts, level, logger, message, fields, id: this.next++ });
    if (this.pending.length > LOG_MAX) this.pending.shift();
    atNextFrame(this.draw);
  }

  markSeen(): void {
    this.unseen = 0;
  }

  clear(): void {
    this.clearedTs = BigInt(this.rows[0]?.ts ?? 0);
    this.rows = [];
    this.unseen = 0;
  }

  private readonly draw = (): void => {
    const known = new Set(this.rows.map(keyOf));
    const fresh = this.pending.filter((row) => !known.has(keyOf(row)));
    this.unseen += fresh.filter((row) => row.level === 'ERROR').length;
    this.rows = [...fresh.reverse(), ...this.rows].slice(0, LOG_MAX);
    this.pending = [];
  };
}

/** An event is the same by REST and by STOMP if all of this is equal. */
const keyOf = ({ ts, logger, message }: LogEvent): string => `${ts} ${logger} ${message}`;
