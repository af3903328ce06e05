// The real binary on loopback, with its own data folder.

import { execFileSync, spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';

const BINARY = process.env.BINARY ?? join(process.env.CARGO_TARGET_DIR ?? '../target', 'sim', 'pitlane');
const START_MS_MAX = 30_000;
/** Journeys send orders far from the market, also before the first price. */
const LIMITS_OFF = ['max_order_qty', 'max_order_value', 'price_collar_pct', 'max_position'].map(
  (limit) => `risk.strategies.${limit}=0`,
);

export class Service {
  #process = null;
  /** `{ http: 'http://127.0.0.1:…', fix: '127.0.0.1:…', … }` */
  addresses = {};

  constructor(settings = []) {
    this.settings = settings;
    this.folder = mkdtempSync(join(tmpdir(), 'pitlane-web-'));
  }

  get url() {
    return `http://${this.addresses.http}/`;
  }

  /** Starts the service. A restart uses the same addresses, as after a crash. */
  async start() {
    const listen = (name, key) => `${key}=${this.addresses[name] ?? '127.0.0.1:0'}`;
    const sets = [
      listen('http', 'http.listen'),
      'https.listen=',
      listen('stomp', 'stomp.listen'),
      'stomp.tls_listen=',
      listen('fix', 'fix.listen'),
      'log.level=warn',
      ...LIMITS_OFF,
      ...this.settings,
    ];
    this.#process = spawn(BINARY, ['serve', '--data', this.folder, ...sets.flatMap((set) => ['--set', set])], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const lines = createInterface({ input: this.#process.stdout });
    const late = setTimeout(() => this.#process.kill('SIGKILL'), START_MS_MAX);
    for await (const line of lines) {
      if (!line.startsWith('ready')) continue;
      clearTimeout(late);
      for (const [, name, address] of line.matchAll(/([a-z-]+)[= ](?:[a-z+]+:\/\/)?((?:127\.0\.0\.1|localhost):\d+)/g))
        this.addresses[name] ??= address;
      // Discards the remaining output, so that the pipe never fills.
      this.#process.stdout.resume();
      return this;
    }
    throw new Error('the service exited before it was ready');
  }

  /** Creates a user; call it before the start. */
  user(name, role, password) {
    const file = join(this.folder, 'users');
    execFileSync(BINARY, ['user', 'add', name, '--role', role, '--file', file], {
      input: `${password}\n`,
      stdio: ['pipe', 'ignore', 'inherit'],
    });
    this.settings = [...this.settings, 'auth.mode=required', `auth.users_file=${file}`];
    return this;
  }

  /** Creates a token and returns its text; call it before the start. */
  token(name, role) {
    const file = join(this.folder, 'tokens');
    const output = execFileSync(BINARY, ['token', 'create', name, '--role', role, '--file', file], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    this.settings = [...this.settings, 'auth.mode=required', `auth.tokens_file=${file}`];
    return output.toString().trim();
  }

  async end(signal = 'SIGTERM') {
    const child = this.#process;
    if (!child || child.exitCode !== null || child.signalCode !== null) return;
    const ended = new Promise((done) => child.once('exit', done));
    child.kill(signal);
    await ended;
  }

  async remove() {
    await this.end('SIGKILL');
    rmSync(this.folder, { recursive: true, force: true });
  }

  /** Calls the service like another client. */
  async call(method, path, body) {
    const init = { method, headers: body === undefined ? {} : { 'Content-Type': 'application/json' } };
    if (body !== undefined) init.body = JSON.stringify(body);
    const response = await fetch(`http://${this.addresses.http}${path}`, init);
    const text = await response.text();
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`);
    return text === '' ? undefined : JSON.parse(text);
  }
}
