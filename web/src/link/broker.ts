// STOMP over WebSocket. Who listens to a topic goes on listening over every loss of the connection; what was missed meanwhile
// is fetched again by whoever keeps a state, see sync.ts.

import { Client, type IMessage, ReconnectionTimeMode, type StompSubscription } from '@stomp/stompjs';

const HEARTBEAT_MS = 5_000;
/** First and longest wait before another attempt to connect. */
const RETRY_MS = 250;
const RETRY_MS_MAX = 4_000;

export type Handler = (topic: string, body: string) => void;

interface Listener {
  pattern: string;
  handler: Handler;
  headers: Record<string, string>;
  subscription: StompSubscription | null;
}

export interface Broker {
  /** Hears a topic or a pattern, until the answer is called. `lastValue` asks for the newest known message of each first. */
  listen(pattern: string, handler: Handler, options?: { lastValue?: boolean }): () => void;
}

export class StompBroker implements Broker {
  onUp: () => void = () => {};
  onDown: (reason: string) => void = () => {};

  private readonly client: Client;
  private readonly listeners = new Set<Listener>();
  private reason = '';

  constructor(url: string, connectHeaders: () => Record<string, string>) {
    this.client = new Client({
      brokerURL: url,
      reconnectDelay: RETRY_MS,
      maxReconnectDelay: RETRY_MS_MAX,
      reconnectTimeMode: ReconnectionTimeMode.EXPONENTIAL,
      connectionTimeout: RETRY_MS_MAX,
      heartbeatIncoming: HEARTBEAT_MS,
      heartbeatOutgoing: HEARTBEAT_MS,
      discardWebsocketOnCommFailure: true,
      // Otherwise each message is written out again as text, for a log that nobody reads: a tenth of all work at 5,000 a second.
      logRawCommunication: true,
      beforeConnect: (client) => {
        client.connectHeaders = connectHeaders();
      },
      onConnect: () => this.connected(),
      onStompError: (frame) => {
        this.reason = frame.headers['message'] ?? 'the service ended the connection';
      },
      onWebSocketClose: () => {
        for (const listener of this.listeners) listener.subscription = null;
        this.onDown(this.reason);
        this.reason = '';
      },
    });
  }

  start(): void {
    this.client.activate();
  }

  async stop(): Promise<void> {
    await this.client.deactivate();
  }

  listen(pattern: string, handler: Handler, { lastValue = false } = {}): () => void {
    const headers: Record<string, string> = lastValue ? { 'last-value': 'true' } : {};
    const listener: Listener = { pattern, handler, headers, subscription: null };
    this.listeners.add(listener);
    if (this.client.connected) this.subscribe(listener);
    return () => {
      this.listeners.delete(listener);
      if (this.client.connected) listener.subscription?.unsubscribe();
    };
  }

  private connected(): void {
    for (const listener of this.listeners) this.subscribe(listener);
    this.onUp();
  }

  private subscribe(listener: Listener): void {
    const hear = ({ headers, body }: IMessage): void =>
      listener.handler((headers['destination'] ?? '').replace('/topic/', ''), body);
    listener.subscription = this.client.subscribe(`/topic/${listener.pattern}`, hear, { ...listener.headers });
  }
}
