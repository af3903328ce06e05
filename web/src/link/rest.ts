// The REST client: one fetch per call, errors as in RFC 9457, and exact decimals.

import { parseJson, writeJson } from '../model/json';
import type { ProblemBody } from '../model/types';

/** Longest wait for a response; the service itself times out earlier. */
const TIMEOUT_MS = 10_000;

/** A failed call, with its reason. */
export class Problem extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    detail: string,
  ) {
    super(detail);
    this.name = 'Problem';
  }

  /** The service cannot be reached. */
  static unreachable(): Problem {
    return new Problem(0, 'unreachable', 'The service does not respond');
  }
}

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
    const { status, ok, text } = await this.send(method, path, options);
    if (ok || status === tolerate) return text === '' ? undefined : parseJson(text);
    const problem = problemOf(status, text);
    if (status === 401) this.onLoginNeeded(problem);
    throw problem;
  }

  /** Headers of STOMP CONNECT. A token is a passcode without a login. */
  connectHeaders(): Record<string, string> {
    const credentials = this.credentials;
    if (!credentials) return {};
    return 'token' in credentials
      ? { passcode: credentials.token }
      : { login: credentials.login, passcode: credentials.password };
  }

  private async send(
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
      return { status: response.status, ok: response.ok, text: await response.text() };
    } catch {
      throw Problem.unreachable();
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
    const body = JSON.parse(text) as Partial<ProblemBody>;
    return new Problem(status, body.code ?? `http-${status}`, body.detail ?? body.title ?? `Status ${status}`);
  } catch {
    return new Problem(status, `http-${status}`, `The service responded with status ${status}`);
  }
}
