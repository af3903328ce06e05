// Parts of the tests of stores.

import type { Broker, Handler } from '../link/broker';
import { Rest } from '../link/rest';
import { matches } from '../model/topic';

/** A broker in this process, with the patterns of the real one. */
export class LocalBroker implements Broker {
  private readonly listeners = new Set<{ pattern: string; handler: Handler }>();

  /** Patterns that are subscribed to now, sorted. */
  get patterns(): string[] {
    return [...this.listeners].map(({ pattern }) => pattern).sort();
  }

  listen(pattern: string, handler: Handler): () => void {
    const listener = { pattern, handler };
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  /** Publishes a message; its body is text, as in a real message. */
  publish(topic: string, body: string): void {
    for (const { pattern, handler } of this.listeners) if (matches(pattern, topic)) handler(topic, body);
  }
}

/** A REST client whose responses are texts, recorded from the service. */
export function fakeRest(answers: Record<string, string | (() => string | Promise<string>)>): Rest {
  return new Rest('', async (input, init) => {
    const found = answers[`${init?.method} ${String(input)}`];
    if (found === undefined) return new Response('{"code":"not-found","detail":"nothing here"}', { status: 404 });
    const text = typeof found === 'string' ? found : await found();
    return new Response(text);
  });
}

/** Waits some turns of the event loop, until all responses have arrived and been drawn. */
export async function settled(): Promise<void> {
  for (let turn = 0; turn < 10; turn++) await new Promise((done) => setTimeout(done, 0));
}
