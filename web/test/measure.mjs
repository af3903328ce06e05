// How it feels, in numbers: 500 securities at 5,000 updates a second, the first price, the download. Printed, not judged: the
// figures depend on the machine, which is told along.

import { cpSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { cpus, loadavg, tmpdir } from 'node:os';
import { join } from 'node:path';

import { browser, open } from './browser.mjs';
import { Service } from './service.mjs';

const SECURITIES = 500;
const UPDATES_PER_S = 5_000;
const WATCH_MS = 10_000;

const chrome = await browser();
console.log(`machine: ${cpus().length} × ${cpus()[0].model.trim()}, load ${loadavg()[0].toFixed(1)}; Chromium ${chrome.version()} without GPU, 1280 × 800`);
await usual();
await busy();
await chrome.close();

/** As shipped: the first price, and what was fetched for it. */
async function usual() {
  const service = await new Service().start();
  const page = await open(chrome, service.url);
  await page.waitForFunction(() => /\d/.test(document.querySelector('tbody tr td:nth-child(3)')?.textContent ?? ''), undefined, { polling: 'raf' });
  const first = await page.evaluate(() => performance.now());
  await page.waitForTimeout(2_000);
  const fetched = await page.evaluate(() =>
    [...performance.getEntriesByType('navigation'), ...performance.getEntriesByType('resource')]
      .filter((entry) => /\/$|\/assets\/|favicon/.test(new URL(entry.name).pathname))
      .reduce((sum, entry) => sum + entry.encodedBodySize, 0));
  console.log(`first price after ${Math.round(first)} ms; files of the page: ${(fetched / 1024).toFixed(1)} KB compressed (brotli)`);
  await service.remove();
}

/** Many securities, all of them moving. */
async function busy() {
  const folder = market();
  const service = await new Service([`refdata.dir=${folder}`, `feed.rate=${UPDATES_PER_S}`, 'broker.maxRatePerConnection=0']).start();
  const page = await open(chrome, service.url);
  await page.getByRole('region', { name: 'Market data' }).getByRole('row').nth(5).waitFor();
  await page.waitForTimeout(3_000);
  const { cpuMs, frames, ticks } = await withCpu(page, () => page.evaluate(async (ms) => {
    const rate = () => Number(/(\d+)\/s/.exec(document.querySelector('.badges')?.textContent ?? '')?.[1] ?? 0);
    const frames = [];
    const rates = [];
    let before = performance.now();
    for (const end = before + ms; before < end; ) {
      const now = await new Promise(requestAnimationFrame);
      frames.push(now - before);
      before = now;
      if (frames.length % 10 === 0) rates.push(rate());
    }
    rates.sort((a, b) => a - b);
    return { frames: frames.slice(1).sort((a, b) => a - b), ticks: rates[rates.length >> 1] };
  }, WATCH_MS));
  const at = (part) => frames[Math.min(frames.length - 1, Math.floor(frames.length * part))].toFixed(1);
  console.log(`${SECURITIES} securities, ${UPDATES_PER_S} updates/s sent, ${ticks}/s heard: frame median ${at(0.5)} ms, 95 % ${at(0.95)}, 99 % ${at(0.99)}, worst ${at(1)}; ${frames.length} frames in ${WATCH_MS / 1000} s; the page's thread computed ${Math.round(cpuMs / (WATCH_MS / 1000))} ms each second`);
  await service.remove();
  rmSync(folder, { recursive: true });
}

/** Processor time of the page's own thread meanwhile, which a busy machine does not lengthen. */
async function withCpu(page, work) {
  const session = await page.context().newCDPSession(page);
  await session.send('Performance.enable', { timeDomain: 'threadTicks' });
  const spent = async () => (await session.send('Performance.getMetrics')).metrics.find(({ name }) => name === 'TaskDuration').value * 1000;
  const before = await spent();
  const result = await work();
  return { ...result, cpuMs: (await spent()) - before };
}

/** The shipped reference data with many stocks in place of its securities. */
function market() {
  const folder = mkdtempSync(join(tmpdir(), 'pitlane-refdata-'));
  cpSync('../config/refdata', folder, { recursive: true });
  const header = 'id,symbol,description,type,securityFamilyId,isin,underlyingId,expiration,strike,optionType,baseCurrency,startPrice,tradeable';
  const rows = Array.from({ length: SECURITIES }, (_, n) => `${n + 1},S${String(n + 1).padStart(3, '0')},Stock ${n + 1},STOCK,1,,,,,,,${(20 + n).toFixed(2)},true`);
  writeFileSync(join(folder, 'securities.csv'), `${[header, ...rows].join('\n')}\n`);
  return folder;
}
