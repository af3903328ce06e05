// Measures the page: the time to the first price, the download size, and 2,000 securities at 5,000
// updates per second, without orders and with 10,000. The results are printed without a verdict, because they depend on the
// machine, which is printed too. For comparison, an empty page is measured in the same browser.
//
//   VARIANTS=1   also measures with software rendering (SwiftShader) and in a small window

import { cpSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { get } from 'node:http';
import { cpus, loadavg, tmpdir } from 'node:os';
import { join } from 'node:path';

import { DevToolsBrowser } from './devtools.mjs';
import { Service } from './service.mjs';

const SECURITIES = 2_000;
const ORDERS = 10_000;
/** Orders sent at the same time. */
const ORDERS_AT_ONCE = 100;
const UPDATES_PER_S = 5_000;
const OPENINGS = 5;
const WATCH_MS = 10_000;
const EMPTY_MS = 3_000;
/** Time after which everything has been fetched and drawn once. */
const SETTLE_MS = 4_000;
/** Time after the first price in which the chart loads, but no hidden panel. */
const CHART_MS = 500;

const sleep = (ms) => new Promise((done) => setTimeout(done, ms));

const VARIANTS = [
  { name: 'without GPU, 1920 × 1080', args: ['--disable-gpu'], size: { width: 1920, height: 1080 } },
  {
    name: 'SwiftShader in place of a GPU, 1280 × 800',
    args: ['--enable-unsafe-swiftshader', '--use-angle=swiftshader', '--ignore-gpu-blocklist'],
  },
  { name: 'without GPU, 900 × 600', args: ['--disable-gpu'], size: { width: 900, height: 600 } },
];

console.log(`machine: ${cpus().length} × ${cpus()[0].model.trim()}, load ${loadavg()[0].toFixed(1)}`);
await opening();
for (const variant of process.env.VARIANTS ? VARIANTS : VARIANTS.slice(0, 1)) await busy(variant);

/**
 * Measures the first price and the downloads with default settings, each time with an empty cache.
 */
async function opening() {
  const service = await new Service().start();
  const chrome = new DevToolsBrowser(VARIANTS[0].args);
  const times = [];
  let files = [];
  for (let n = 0; n < OPENINGS; n++) {
    const page = await chrome.open(service.url, { script: watchFirstPrice });
    await sleep(SETTLE_MS);
    times.push(await page.evaluate(() => window.firstPrice));
    files = await page.evaluate(filesOfPage);
    await page.close();
  }
  const initial = files.filter(({ at }) => at < times.at(-1) + CHART_MS);
  const kilobytes = (sizes) => (sizes.reduce((sum, size) => sum + size, 0) / 1024).toFixed(1);
  const report = async (what, list) => {
    const gzip = await Promise.all(list.map(({ url }) => bytes(url, 'gzip')));
    console.log(
      `${what}: ${list.length} files, ${kilobytes(gzip)} KB as gzip, ${kilobytes(list.map((file) => file.bytes))} KB as fetched (brotli)`,
    );
  };
  console.log(
    `first price painted after ${times.map((ms) => Math.round(ms)).join(', ')} ms, load ${loadavg()[0].toFixed(1)}`,
  );
  await report('visible parts, including the chart', initial);
  await report('all parts, including panels fetched later', files);
  await chrome.close();
  await service.remove();
}

/** Runs in the page: returns its files in the order of the requests. */
function filesOfPage() {
  return [...performance.getEntriesByType('navigation'), ...performance.getEntriesByType('resource')]
    .filter((entry) => /^\/$|\/assets\/|favicon/.test(new URL(entry.name).pathname))
    .map((entry) => ({ url: entry.name, bytes: entry.encodedBodySize, at: entry.startTime }));
}

/** Runs in the page: when the frame after the first price begins, that price has been painted. */
function watchFirstPrice() {
  const look = () => {
    const cell = document.querySelector('tbody tr td:nth-child(3)');
    if (/\d/.test(cell?.textContent ?? '')) requestAnimationFrame(() => (window.firstPrice = performance.now()));
    else requestAnimationFrame(look);
  };
  requestAnimationFrame(look);
}

/** Returns the number of bytes sent for a file with an encoding. */
function bytes(url, encoding) {
  return new Promise((done, fail) => {
    get(url, { headers: { 'Accept-Encoding': encoding } }, (response) => {
      let sum = 0;
      response.on('data', (part) => (sum += part.length)).on('end', () => done(sum));
    }).on('error', fail);
  });
}

/** Measures many securities with changing prices, after an empty page in the same window. */
async function busy({ name, args, size }) {
  const folder = market();
  const service = await new Service([
    `refdata.dir=${folder}`,
    `feed.rate=${UPDATES_PER_S}`,
    'broker.maxRatePerConnection=0',
    'risk.strategies.max_orders_per_s=0',
    `risk.strategies.max_open_orders=${2 * ORDERS}`,
  ]).start();
  const chrome = new DevToolsBrowser(args);
  const blank = await chrome.open('about:blank', size);
  const { frames: empty } = await blank.evaluate(countFrames, EMPTY_MS);
  await blank.close();
  const page = await chrome.open(service.url, { ...size, script: watchFirstPrice });
  await sleep(SETTLE_MS);
  const { cpuMs, frames, received } = await withCpu(page, () => page.evaluate(countFrames, WATCH_MS));
  console.log(`${name}; ${await chrome.version()}, load ${loadavg()[0].toFixed(1)}`);
  console.log(`  empty page: ${summary(empty)}`);
  console.log(
    `  ${SECURITIES} securities, ${UPDATES_PER_S} updates/s sent, ${received}/s received: ${summary(frames)}; the page's thread used ${Math.round(cpuMs / (WATCH_MS / 1000))} ms CPU per second`,
  );
  await sendOrders(service);
  await sleep(SETTLE_MS);
  const loaded = await withCpu(page, () => page.evaluate(countFrames, WATCH_MS));
  console.log(
    `  with ${ORDERS} open orders: ${summary(loaded.frames)}; the page's thread used ${Math.round(loaded.cpuMs / (WATCH_MS / 1000))} ms CPU per second`,
  );
  await chrome.close();
  await service.remove();
  rmSync(folder, { recursive: true });
}

/** Sends orders that stay open. */
async function sendOrders(service) {
  const send = (n) =>
    service.call('POST', '/rest/execution/order/limit', {
      securityId: 1 + (n % SECURITIES),
      side: 'BUY',
      quantity: 1,
      limit: 5,
    });
  for (let n = 0; n < ORDERS; n += ORDERS_AT_ONCE)
    await Promise.all(Array.from({ length: ORDERS_AT_ONCE }, (_, at) => send(n + at)));
}

function summary(frames) {
  const at = (part) => frames[Math.min(frames.length - 1, Math.floor(frames.length * part))].toFixed(1);
  return `frame median ${at(0.5)} ms, 95 % ${at(0.95)}, 99 % ${at(0.99)}, worst ${at(1)}, ${frames.length} frames`;
}

/** Runs in the page: returns the durations of frames, and the message rate from the header. */
async function countFrames(ms) {
  const frames = [];
  const rates = [];
  let before = await new Promise(requestAnimationFrame);
  for (const end = before + ms; before < end;) {
    const now = await new Promise(requestAnimationFrame);
    frames.push(now - before);
    before = now;
    if (frames.length % 10 === 0)
      rates.push(Number(/(\d+)\/s/.exec(document.querySelector('.badges')?.textContent ?? '')?.[1] ?? 0));
  }
  rates.sort((a, b) => a - b);
  return { frames: frames.sort((a, b) => a - b), received: rates[rates.length >> 1] };
}

/** Adds the CPU time of the page's thread, which does not depend on the load of the machine. */
async function withCpu(page, work) {
  await page.send('Performance.enable', { timeDomain: 'threadTicks' });
  const spent = async () =>
    (await page.send('Performance.getMetrics')).metrics.find(({ name }) => name === 'TaskDuration').value * 1000;
  const before = await spent();
  const result = await work();
  return { ...result, cpuMs: (await spent()) - before };
}

/** Creates a copy of the default reference data with many stocks as securities. */
function market() {
  const folder = mkdtempSync(join(tmpdir(), 'pitlane-refdata-'));
  cpSync('../config/refdata', folder, { recursive: true });
  const header =
    'id,symbol,description,type,securityFamilyId,isin,underlyingId,expiration,strike,optionType,baseCurrency,startPrice,tradeable';
  const rows = Array.from(
    { length: SECURITIES },
    (_, n) => `${n + 1},S${String(n + 1).padStart(3, '0')},Stock ${n + 1},STOCK,1,,,,,,,${(20 + n).toFixed(2)},true`,
  );
  writeFileSync(join(folder, 'securities.csv'), `${[header, ...rows].join('\n')}\n`);
  return folder;
}
