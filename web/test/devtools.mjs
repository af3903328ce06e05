// A browser controlled directly over its debugging pipe. Playwright subscribes to every network
// event, including each WebSocket message: in a busy market the browser would spend most of its
// time on these events.

import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { CHROMIUM } from './browser.mjs';

const ARGS = [
  '--headless',
  '--remote-debugging-pipe',
  '--no-sandbox',
  '--disable-background-networking',
  '--disable-dev-shm-usage',
  '--disable-extensions',
  '--no-first-run',
];

export class DevToolsBrowser {
  #next = 1;
  #waiting = new Map();
  #folder = mkdtempSync(join(tmpdir(), 'pitlane-chromium-'));
  #process;

  constructor(args) {
    this.#process = spawn(CHROMIUM, [...ARGS, ...args, `--user-data-dir=${this.#folder}`], {
      stdio: ['ignore', 'ignore', 'ignore', 'pipe', 'pipe'],
    });
    let rest = '';
    this.#process.stdio[4].setEncoding('utf8').on('data', (text) => {
      const messages = (rest + text).split('\0');
      rest = messages.pop();
      for (const message of messages) this.#handle(JSON.parse(message));
    });
  }

  send(method, params = {}, sessionId) {
    const id = this.#next++;
    this.#process.stdio[3].write(`${JSON.stringify({ id, method, params, sessionId })}\0`);
    return new Promise((done, fail) => this.#waiting.set(id, { done, fail, method }));
  }

  #handle({ id, result, error }) {
    const request = this.#waiting.get(id);
    this.#waiting.delete(id);
    if (error) request?.fail(new Error(`${request.method}: ${error.message}`));
    else request?.done(result);
  }

  async version() {
    return (await this.send('Browser.getVersion')).product;
  }

  /** Opens a page in its own context. `script` runs in it before its own scripts. */
  async open(url, { width = 1280, height = 800, script } = {}) {
    const { browserContextId } = await this.send('Target.createBrowserContext');
    const { targetId } = await this.send('Target.createTarget', { url: 'about:blank', browserContextId });
    const { sessionId } = await this.send('Target.attachToTarget', { targetId, flatten: true });
    const page = new DevToolsPage(
      (method, params) => this.send(method, params, sessionId),
      () => this.send('Target.disposeBrowserContext', { browserContextId }),
    );
    await page.send('Emulation.setDeviceMetricsOverride', { width, height, deviceScaleFactor: 1, mobile: false });
    await page.send('Page.enable');
    if (script) await page.send('Page.addScriptToEvaluateOnNewDocument', { source: `(${script})()` });
    await page.send('Page.navigate', { url });
    return page;
  }

  async close() {
    const ended = new Promise((done) => this.#process.once('exit', done));
    await this.send('Browser.close');
    await ended;
    // Its child processes may still write.
    rmSync(this.#folder, { recursive: true, force: true, maxRetries: 20 });
  }
}

class DevToolsPage {
  constructor(send, close) {
    Object.assign(this, { send, close });
  }

  /** Runs a function in the page and returns its result. */
  async evaluate(work, ...args) {
    const expression = `(${work})(${args.map((arg) => JSON.stringify(arg)).join(',')})`;
    const { result, exceptionDetails } = await this.send('Runtime.evaluate', {
      expression,
      awaitPromise: true,
      returnByValue: true,
    });
    if (exceptionDetails) throw new Error(exceptionDetails.exception?.description ?? exceptionDetails.text);
    return result.value;
  }
}
