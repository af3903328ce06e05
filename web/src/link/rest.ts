// The REST client: one fetch per call, errors as in RFC 9457, and exact decimals.

import { parseJson, writeJson } from '../model/json';
import type { ProblemBody } from '../model/types';

/** Longest wait for a response: longer than the ten seconds in which the service itself answers. */
const TIMEOUT_MS = 15_000;

/** A command was sent to a shard, and its result did not arrive in time. */
const NO_ANSWER = 'no-answer';

/** A failed call, with its reason. */
export class Problem extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    detail: string,
    /**
     * Whether the service has decided: it refused the call. Otherwise the browser, the network or a
     * proxy failed, and the call may have taken effect.
     */
    readonly isAnswer = true,
  ) {
    super(detail);
    this.name = 'Problem';
  }

  /** The browser got no response. It does not say whether the request was sent. */
  static unreachable(reason = 'The service does not respond'): Problem {
    return new Problem(0, 'unreachable', reason, false);
  }
}

/** Returns whether the service refused a call, rather than that no response arrived. */
export const isRefusal = (problem: unknown): boolean => problem instanceof Problem && problem.isAnswer;

/** A login with its password, or a token. */
export type Credentials = { login: string; password: string } | { token: string };

export interface Options {
  body?: Record<string, unknown> | string | number;
  headers?: Record<string, string>;
}

export class Rest {
  credentials: Credentials | null = null;
  /** Called when the service requires a login. */
  onLoginNeeded: (problem: Problem) => void = () => {};
  /** Called with the Date header of each response. */
  onDate: (date: string | null) => void = () => {};

  constructor(
    private readonly base = '',
    private readonly fetcher: typeof fetch = (...request) => fetch(...request),
  ) {}

  get<T>(path: string): Promise<T> {
    return this.call('GET', path) as Promise<T>;
  }

  post(path: string, options?: Options): Promise<unknown> {
    return this.call('POST', path, options);
  }

  put(path: string, options?: Options): Promise<unknown> {
    return this.call('PUT', path, options);
  }

  delete(path: string): Promise<unknown> {
    return this.call('DELETE', path);
  }

  /** Sends a call. The body of a response with the status `tolerate` is a result, not a problem. */
  async call(method: string, path: string, options: Options = {}, tolerate?: number): Promise<unknown> {
    const text = await this.send(method, path, options, tolerate);
    return text === '' ? undefined : parseJson(text);
  }

  /** Reads a response that is not JSON, such as a page. */
  text(path: string): Promise<string> {
    return this.send('GET', path);
  }

  /** Headers of STOMP CONNECT. A token is a passcode without a login. */
  connectHeaders(): Record<string, string> {
    const credentials = this.credentials;
    if (!credentials) return {};
    return 'token' in credentials
      ? { passcode: credentials.token }
      : { login: credentials.login, passcode: credentials.password };
  }

  /** Sends a call, and returns the body of its response. */
  private async send(method: string, path: string, options: Options = {}, tolerate?: number): Promise<string> {
    const { status, ok, text } = await this.respond(method, path, options);
    if (ok || status === tolerate) return text;
    const problem = problemOf(status, text);
    if (status === 401) this.onLoginNeeded(problem);
    throw problem;
  }

  private async respond(
    method: string,
    path: string,
    { body, headers }: Options,
  ): Promise<{ status: number; ok: boolean; text: string }> {
    const init: RequestInit = {
      method,
      headers: {
        ...this.authorization(),
        ...(body === undefined ? {} : { 'Content-Type': 'application/json' }),
        ...headers,
      },
      credentials: 'omit',
      cache: 'no-store',
      signal: AbortSignal.timeout(TIMEOUT_MS),
    };
    if (body !== undefined) init.body = typeof body === 'object' ? writeJson(body) : String(body);
    try {
      const response = await this.fetcher(this.base + path, init);
      this.onDate(response.headers.get('Date'));
      return { status: response.status, ok: response.ok, text: await response.text() };
    } catch (failure) {
      throw Problem.unreachable(failureText(failure));
    }
  }

  private authorization(): Record<string, string> {
    const credentials = this.credentials;
    if (!credentials) return {};
    if ('token' in credentials) return { Authorization: `Bearer ${credentials.token}` };
    const bytes = new TextEncoder().encode(`${credentials.login}:${credentials.password}`);
    return { Authorization: `Basic ${btoa(String.fromCharCode(...bytes))}` };
  }
}

function problemOf(status: number, text: string): Problem {
  try {
    const { code, detail, title } = JSON.parse(text) as Partial<ProblemBody>;
    if (code !== undefined) return new Problem(status, code, detail ?? title ?? `Status ${status}`, code !== NO_ANSWER);
  } catch {
    // Not a problem of the service: see below.
  }
  // The service sends some refusals without a body. A status 5xx without one is that of a proxy.
  return new Problem(status, `http-${status}`, `The response has the status ${status}`, status < 500);
}

/** Returns what failed, in words. Browsers give no details of a failed connection. */
function failureText(failure: unknown): string {
  const isTimeout = failure instanceof DOMException && failure.name === 'TimeoutError';
  if (isTimeout) return `The service did not respond within ${TIMEOUT_MS / 1000} s`;
  return globalThis.navigator?.onLine === false ? 'The browser is offline' : 'The service does not respond';
}
