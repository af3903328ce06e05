// Warnings and errors of the service since the page was opened.

import type { Broker } from '../link/broker';
import { atNextFrame } from '../link/frame';
import { parseJson } from '../model/json';
import type { LogMessage } from '../model/types';

/** Log events kept; the log of the service has all of them. */
export const LOG_MAX = 1_000;

export interface LogRow extends LogMessage {
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

  constructor(broker: Broker) {
    broker.listen('log-event.*', (_, body) => this.handle(parseJson(body) as LogMessage));
  }

  handle(message: LogMessage): void {
    this.pending.push({ ...message, id: this.next++ });
    if (this.pending.length > LOG_MAX) this.pending.shift();
    atNextFrame(this.draw);
  }

  markSeen(): void {
    this.unseen = 0;
  }

  clear(): void {
    this.rows = [];
    this.unseen = 0;
  }

  private readonly draw = (): void => {
    this.unseen += this.pending.filter((row) => row.level === 'ERROR').length;
    this.rows = [...this.pending.reverse(), ...this.rows].slice(0, LOG_MAX);
    this.pending = [];
  };
}
