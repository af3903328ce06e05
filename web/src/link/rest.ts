// The REST interface: one fetch, errors as the service tells them (RFC 9457), decimals unharmed.

import { parseJson, writeJson } from '../model/json';
import type { ProblemBody } from '../model/types';

/** Longest wait for an answer; the service itself gives up before. */
const TIMEOUT_MS = 10_000;

/** Something was not done, and why. */
export class Problem extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    detail: string,
  ) {
    super(detail);
    this.name = 'Problem';
  }

  /** The service cannot be reached at all. */
  static unreachable(): Problem {
    return new Problem(0, 'unreachable', 'The service does not answer');
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
  /** Called when the service wants to know who asks. */
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

  /** As above; `tolerate` names a status whose body is as good as an answer. */
  async call(method: string, path: string, options: Options = {}, tolerate?: number): Promise<unknown> {
    const { status, ok, text } = await this.send(method, path, options);
    if (ok || status === tolerate) return text === '' ? undefined : parseJson(text);
    const problem = problemOf(status, text);
    if (status === 401) this.onLoginNeeded(problem);
    throw problem;
  }

  /** What STOMP's CONNECT carries: a token is a passcode without a login. */
  connectHeaders(): Record<string, string> {
    const credentials = this.credentials;
    if (!credentials) return {};
    return 'token' in credentials ? { passcode: credentials.token } : { login: credentials.login, passcode: credentials.password };
  }

  private async send(method: string, path: string, { body, headers }: Options): Promise<{ status: number; ok: boolean; text: string }> {
    const init: RequestInit = {
      method,
      headers: { ...this.authorization(), ...(body === undefined ? {} : { 'Content-Type': 'application/json' }), ...headers },
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
    return new Problem(status, `http-${status}`, `The service answered with status ${status}`);
  }
}
