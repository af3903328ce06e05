// The topic browser: messages of the patterns that the user subscribed to.

import type { Broker } from '../link/broker';
import { atNextFrame } from '../link/frame';
import { patternError } from '../model/topic';

/** Messages shown, and topics counted, at most. */
const MESSAGES_MAX = 300;
const TOPICS_MAX = 2_000;

export interface TopicMessage {
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

export class TopicStore {
  patterns: string[] = $state.raw([]);
  messages: TopicMessage[] = $state.raw([]);
  counts: TopicCount[] = $state.raw([]);
  paused = $state(false);
  total = $state(0);

  private readonly subscriptions = new Map<string, () => void>();
  private readonly byTopic = new Map<string, TopicCount>();
  private pending: TopicMessage[] = [];
  private next = 1;

  constructor(private readonly broker: Broker) {}

  /** Subscribes to a pattern. Returns its error, or null. */
  add(pattern: string): string | null {
    const wrong = patternError(pattern);
    if (wrong || this.subscriptions.has(pattern)) return wrong;
    this.subscriptions.set(
      pattern,
      this.broker.listen(pattern, (topic, body) => this.handle(topic, body), { lastValue: true }),
    );
    this.patterns = [...this.subscriptions.keys()];
    return null;
  }

  remove(pattern: string): void {
    this.subscriptions.get(pattern)?.();
    this.subscriptions.delete(pattern);
    this.patterns = [...this.subscriptions.keys()];
  }

  clear(): void {
    this.byTopic.clear();
    this.pending = [];
    this.messages = [];
    this.counts = [];
    this.total = 0;
  }

  private handle(topic: string, body: string): void {
    const message = { id: this.next++, at: Date.now(), topic, body };
    const count = this.byTopic.get(topic);
    if (count) Object.assign(count, { count: count.count + 1, at: message.at });
    else if (this.byTopic.size < TOPICS_MAX) this.byTopic.set(topic, { topic, count: 1, at: message.at });
    this.pending.push(message);
    if (this.pending.length > MESSAGES_MAX) this.pending.shift();
    atNextFrame(this.draw);
  }

  private readonly draw = (): void => {
    this.total = this.next - 1;
    if (this.paused) return;
    this.messages = [...this.pending.reverse(), ...this.messages].slice(0, MESSAGES_MAX);
    this.pending = [];
    this.counts = [...this.byTopic.values()]
      .map((count) => ({ ...count }))
      .sort((a, b) => (a.topic < b.topic ? -1 : 1));
  };
}
