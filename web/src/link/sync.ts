// A snapshot by REST, then deltas by STOMP.
//
//   start ── messages wait ──► snapshot comes ──► it is put in, what queued is put on top ──► messages go straight in
//     ▲                                                                                               │
//     └────────────────────── a gap, or the link was lost: again from the start ◄─────────────────────┘
//
// Messages that queued may be older than the snapshot. That does no harm: whoever puts them in knows what is newer (orders have
// the time of their last change), or is given full images whose last one is the newest.

import { atNextFrame } from './frame';
import { Problem } from './rest';

/** Messages kept while a snapshot is on its way: some seconds of a very busy day. Beyond, the snapshot is fetched once more. */
const QUEUE_MAX = 20_000;
const RETRY_MS = 500;
/** After a gap: what else is missing comes in meanwhile, and is not asked for one by one. */
const GAP_MS = 200;
const RETRY_MS_MAX = 5_000;

export class Sync<Message> {
  private queue: Message[] | null = [];
  private run = 0;
  private overflow = false;

  constructor(
    private readonly parts: {
      /** Fetches and gives back how to put it in, so that nothing is half replaced. */
      snapshot: () => Promise<() => void>;
      apply: (message: Message) => void;
      /** Draws, once per frame. */
      draw: () => void;
      onFailure?: (problem: unknown) => void;
    },
  ) {}

  /** Whether what is shown stems from a snapshot, and nothing is missing. */
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

  /** Something is missing: everything is fetched again, once, however often that is noticed. */
  gap(): void {
    if (this.queue !== null) return;
    this.queue = [];
    setTimeout(() => void this.restart(), GAP_MS);
  }

  /** Fetches everything again. Who asks several times gets the newest only. */
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
        // What is refused stays refused until somebody logs in, or the service is another one; both restart us.
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
 * Watches the numbers of messages. A shard numbers what it says, and a security belongs to one shard: so within one kind of
 * message about one security the numbers rise. They have holes, since each subscriber gets only what it asked for; but if they
 * fall, the service has begun anew and what we have is from another life.
 */
export class Sequence {
  private readonly newest = new Map<number | string, number>();

  /** Whether the message follows what was heard before. */
  follows(key: number | string, seq: number): boolean {
    if (seq < (this.newest.get(key) ?? 0)) return false;
    this.newest.set(key, seq);
    return true;
  }

  reset(): void {
    this.newest.clear();
  }
}
