// STOMP over WebSocket. A listener stays subscribed across every loss of the connection. A store
// with state fetches what it missed, see sync.ts.
//
//   WebSocket ─┬─ a message ────► listener
//              └─ other frames ─► library ─► connection, receipts, errors

import { Client, type IMessage, ReconnectionTimeMode, type StompSubscription } from '@stomp/stompjs';

import { readMessage } from './message';
import { Silence } from './silence';

/**
 * Interval of the heart-beats of the page, and of those it asks the service for. The service ends a
 * connection after two missing ones, and a page whose thread is blocked for some seconds is alive.
 */
const HEARTBEAT_OUT_MS = 15_000;
const HEARTBEAT_IN_MS = 1_000;
/** Time without any data after which the connection counts as lost. */
const LOST_MS = 10_000;
/** First and longest delay before another attempt to connect. */
const RETRY_MS = 250;
const RETRY_MS_MAX = 4_000;

export type Handler = (topic: string, body: string) => void;

export interface SubscribeOptions {
  /** Requests the newest known message of each topic first. */
  lastValue?: boolean;
  /**
   * Called on each connection when this and all earlier subscriptions are active: no later message
   * is missed.
   */
  onSubscribed?: () => void;
}

interface Listener extends SubscribeOptions {
  /** Id of its subscription, the same on every connection. */
  id: string;
  pattern: string;
  handler: Handler;
  subscription: StompSubscription | null;
}

export interface Broker {
  /** Subscribes to a topic or a pattern. The returned function ends the subscription. */
  listen(pattern: string, handler: Handler, options?: SubscribeOptions): () => void;
}

export class StompBroker implements Broker {
  /** A connection has begun; no message has arrived yet. */
  onConnected: () => void = () => {};
  /** All subscriptions are active, so that a snapshot requested now misses nothing. */
  onUp: () => void = () => {};
  onDown: (reason: string) => void = () => {};
  /**
   * The service refused the login. The next attempt is at `start`: the service counts attempts as
   * guesses.
   */
  onRefused: (reason: string) => void = () => {};

  private readonly client: Client;
  private readonly listeners = new Map<string, Listener>();
  private nextId = 1;
  private reason = '';
  /** Whether this connection has logged in. */
  private isLoggedIn = false;
  private isRefused = false;
  private readonly silence = new Silence();

  constructor(url: string, connectHeaders: () => Record<string, string>) {
    this.client = new Client({
      webSocketFactory: () => this.socket(url),
      reconnectDelay: RETRY_MS,
      maxReconnectDelay: RETRY_MS_MAX,
      reconnectTimeMode: ReconnectionTimeMode.EXPONENTIAL,
      connectionTimeout: RETRY_MS_MAX,
      heartbeatIncoming: HEARTBEAT_IN_MS,
      heartbeatOutgoing: HEARTBEAT_OUT_MS,
      // The library would count time in which the page was blocked; see `checkSilence`.
      heartbeatToleranceMultiplier: Infinity,
      discardWebsocketOnCommFailure: true,
      // Otherwise the library formats each message for an unused log: a tenth of all work at 5,000
      // messages per second.
      logRawCommunication: true,
      beforeConnect: (client) => {
        client.connectHeaders = connectHeaders();
      },
      onConnect: () => this.connected(),
      onStompError: (frame) => {
        this.reason = frame.headers['message'] ?? 'the service ended the connection';
        this.isRefused = !this.isLoggedIn && 'passcode' in this.client.connectHeaders;
      },
      onWebSocketClose: () => this.closed(),
    });
  }

  start(): void {
    this.client.activate();
  }

  async stop(): Promise<void> {
    await this.client.deactivate();
  }

  /**
   * Returns the time without any data from the service, and ends a lost connection; 0 without a
   * connection. The page calls it at intervals.
   */
  checkSilence(now = performance.now()): number {
    const silentMs = this.silence.check(now);
    if (!this.client.connected) return 0;
    if (silentMs >= LOST_MS) {
      this.reason = 'The service sent no heart-beat';
      this.client.forceDisconnect();
    }
    return silentMs;
  }

  listen(pattern: string, handler: Handler, options: SubscribeOptions = {}): () => void {
    const listener: Listener = { ...options, id: `s${this.nextId++}`, pattern, handler, subscription: null };
    this.listeners.set(listener.id, listener);
    if (this.client.connected) this.subscribe(listener);
    return () => {
      this.listeners.delete(listener.id);
      if (this.client.connected) listener.subscription?.unsubscribe();
    };
  }

  private socket(url: string): WebSocket {
    const socket = new WebSocket(url, this.client.stompVersions.protocolVersions());
    // Runs before the handler of the library, which is added later.
    socket.addEventListener('message', (event) => {
      this.silence.heard(performance.now());
      const message = readMessage(event.data);
      const listener = message && this.listeners.get(message.subscription);
      if (!listener) return;
      event.stopImmediatePropagation();
      listener.handler(message.topic, message.body);
    });
    return socket;
  }

  private closed(): void {
    for (const listener of this.listeners.values()) listener.subscription = null;
    const { reason, isRefused } = this;
    this.reason = '';
    this.isLoggedIn = this.isRefused = false;
    this.onDown(reason);
    if (!isRefused) return;
    void this.stop();
    this.onRefused(reason);
  }

  private connected(): void {
    this.isLoggedIn = true;
    this.onConnected();
    const listeners = [...this.listeners.values()];
    for (const listener of listeners) this.subscribe(listener, listener === listeners.at(-1));
  }

  private subscribe(listener: Listener, isLast = false): void {
    const handle = ({ headers, body }: IMessage): void =>
      listener.handler((headers['destination'] ?? '').replace('/topic/', ''), body);
    const headers: Record<string, string> = { id: listener.id };
    if (listener.lastValue) headers['last-value'] = 'true';
    if (listener.onSubscribed || isLast) {
      headers['receipt'] = `subscribed-${listener.id}`;
      this.client.watchForReceipt(headers['receipt'], () => {
        listener.onSubscribed?.();
        if (isLast) this.onUp();
      });
    }
    listener.subscription = this.client.subscribe(`/topic/${listener.pattern}`, handle, headers);
  }
}
