// Synchronises a store: a snapshot by REST, then changes by STOMP.
//
//   start ── messages queue ──► snapshot arrives ──► apply it, then the queue ──► apply messages
//     ▲                                                                                │
//     └────────────────── a gap, or a lost connection: restart ◄───────────────────────┘
//
// Queued messages may be older than the snapshot. This is harmless: a store compares times (an
// order has the time of its last change), or messages are full images, of which the last one is the
// newest.

import { atNextFrame } from './frame';
import { Problem } from './rest';

/**
 * Messages queued during a snapshot: some seconds of a very busy day. Beyond, the snapshot is
 * fetched again.
 */
const QUEUE_MAX = 20_000;
const RETRY_MS = 500;
/** Delay after a gap, so that several gaps in a row cause one snapshot. */
const GAP_MS = 200;
const RETRY_MS_MAX = 5_000;

export class Sync<Message> {
  private queue: Message[] | null = [];
  private run = 0;
  private overflow = false;

  constructor(
    private readonly parts: {
      /**
       * Fetches the data and returns a function that applies it, so that the data is replaced as a
       * whole.
       */
      snapshot: () => Promise<() => void>;
      apply: (message: Message) => void;
      /** Draws the store, once per frame. */
      draw: () => void;
      onFailure?: (problem: unknown) => void;
    },
  ) {}

  /** Whether the store has a snapshot and has missed no message since. */
  get isComplete(): boolean {
    return this.queue === null;
  }

  handle(message: Message): void {
    if (this.queue === null) {
      this.parts.apply(message);
      atNextFrame(this.parts.draw);
    } else if (this.queue.length < QUEUE_MAX) {
      this.queue.push(message);
    } else {
      this.overflow = true;
    }
  }

  /** Reports a missing message. Fetches a snapshot once, however often this is called. */
  gap(): void {
    if (this.queue !== null) return;
    this.queue = [];
    setTimeout(() => void this.restart(), GAP_MS);
  }

  /** Fetches a snapshot. A later call replaces an earlier one. */
  async restart(): Promise<void> {
    const run = ++this.run;
    this.queue ??= [];
    for (let wait = RETRY_MS; run === this.run; wait = Math.min(wait * 2, RETRY_MS_MAX)) {
      try {
        const applySnapshot = await this.parts.snapshot();
        if (run !== this.run) return;
        if (!this.overflow) return this.finish(applySnapshot);
        this.overflow = false;
        this.queue = [];
      } catch (problem) {
        this.parts.onFailure?.(problem);
        // These stay refused until a login or another version of the service; both call `restart`.
        if (problem instanceof Problem && [401, 403, 404].includes(problem.status)) return;
        await new Promise((done) => setTimeout(done, wait));
      }
    }
  }

  private finish(applySnapshot: () => void): void {
    applySnapshot();
    const queued = this.queue ?? [];
    this.queue = null;
    for (const message of queued) this.parts.apply(message);
    atNextFrame(this.parts.draw);
  }
}

/**
 * Checks sequence numbers. A shard numbers its messages, and a security belongs to one shard, so
 * the numbers of one kind of message about one security increase. They have gaps, because a
 * subscriber receives only a part of the messages. If a number decreases, the service has restarted
 * and the data is out of date.
 */
export class Sequence {
  private readonly newest = new Map<number | string, number>();

  /** Returns whether the number is not below the previous one. */
  follows(key: number | string, seq: number): boolean {
    if (seq < (this.newest.get(key) ?? 0)) return false;
    this.newest.set(key, seq);
    return true;
  }

  reset(): void {
    this.newest.clear();
  }
}
