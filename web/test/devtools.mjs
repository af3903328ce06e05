// A browser spoken to directly, over its debugging pipe, and only about what is asked. Playwright has every network event told to
// it, each WebSocket message among them: in a busy market the browser would be busiest with being watched.

import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const ARGS = ['--headless', '--remote-debugging-pipe', '--no-sandbox', '--disable-background-networking', '--disable-dev-shm-usage', '--disable-extensions', '--no-first-run'];

export class DevToolsBrowser {
  #next = 1;
  #waiting = new Map();
  #folder = mkdtempSync(join(tmpdir(), 'pitlane-chromium-'));
  #process;

  constructor(args) {
    const path = process.env.CHROMIUM ?? '/usr/bin/chromium';
    this.#process = spawn(path, [...ARGS, ...args, `--user-data-dir=${this.#folder}`], { stdio: ['ignore', 'ignore', 'ignore', 'pipe', 'pipe'] });
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
    const asked = this.#waiting.get(id);
    this.#waiting.delete(id);
    if (error) asked?.fail(new Error(`${asked.method}: ${error.message}`));
    else asked?.done(result);
  }

  async version() {
    return (await this.send('Browser.getVersion')).product;
  }

  /** A page with nothing of the others; a script in it runs before its own. */
  async open(url, { width = 1280, height = 800, script } = {}) {
    const { browserContextId } = await this.send('Target.createBrowserContext');
    const { targetId } = await this.send('Target.createTarget', { url: 'about:blank', browserContextId });
    const { sessionId } = await this.send('Target.attachToTarget', { targetId, flatten: true });
    const page = new DevToolsPage((method, params) => this.send(method, params, sessionId), () => this.send('Target.disposeBrowserContext', { browserContextId }));
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
    // Its children may still write.
    rmSync(this.#folder, { recursive: true, force: true, maxRetries: 20 });
  }
}

class DevToolsPage {
  constructor(send, close) {
    Object.assign(this, { send, close });
  }

  /** What a function answers in the page. */
  async evaluate(work, ...args) {
    const expression = `(${work})(${args.map((arg) => JSON.stringify(arg)).join(',')})`;
    const { result, exceptionDetails } = await this.send('Runtime.evaluate', { expression, awaitPromise: true, returnByValue: true });
    if (exceptionDetails) throw new Error(exceptionDetails.exception?.description ?? exceptionDetails.text);
    return result.value;
  }
}
