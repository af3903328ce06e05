// The browser of topics: what was heard under the patterns the reader chose.

import type { Broker } from '../link/broker';
import { atNextFrame } from '../link/frame';
import { fault } from '../model/topic';

/** Messages shown, and topics counted. */
const MESSAGES_MAX = 300;
const TOPICS_MAX = 2_000;

export interface Heard {
  id: number;
  at: number;
  topic: string;
  body: string;
}

export interface TopicCount {
  topic: string;
  count: number;
  at: number;
}

export class Topics {
  patterns: string[] = $state.raw([]);
  messages: Heard[] = $state.raw([]);
  counts: TopicCount[] = $state.raw([]);
  paused = $state(false);
  total = $state(0);

  private readonly leave = new Map<string, () => void>();
  private readonly byTopic = new Map<string, TopicCount>();
  private pending: Heard[] = [];
  private next = 1;

  constructor(private readonly broker: Broker) {}

  /** Answers what is wrong with the pattern, or null. */
  add(pattern: string): string | null {
    const wrong = fault(pattern);
    if (wrong || this.leave.has(pattern)) return wrong;
    this.leave.set(pattern, this.broker.listen(pattern, (topic, body) => this.hear(topic, body), { lastValue: true }));
    this.patterns = [...this.leave.keys()];
    return null;
  }

  remove(pattern: string): void {
    this.leave.get(pattern)?.();
    this.leave.delete(pattern);
    this.patterns = [...this.leave.keys()];
  }

  clear(): void {
    this.byTopic.clear();
    this.pending = [];
    this.messages = [];
    this.counts = [];
    this.total = 0;
  }

  private hear(topic: string, body: string): void {
    const heard = { id: this.next++, at: Date.now(), topic, body };
    const count = this.byTopic.get(topic);
    if (count) Object.assign(count, { count: count.count + 1, at: heard.at });
    else if (this.byTopic.size < TOPICS_MAX) this.byTopic.set(topic, { topic, count: 1, at: heard.at });
    this.pending.push(heard);
    if (this.pending.length > MESSAGES_MAX) this.pending.shift();
    atNextFrame(this.draw);
  }

  private readonly draw = (): void => {
    this.total = this.next - 1;
    if (this.paused) return;
    this.messages = [...this.pending.reverse(), ...this.messages].slice(0, MESSAGES_MAX);
    this.pending = [];
    this.counts = [...this.byTopic.values()].map((count) => ({ ...count })).sort((a, b) => (a.topic < b.topic ? -1 : 1));
  };
}
