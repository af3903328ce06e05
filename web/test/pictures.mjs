// Takes a picture of every panel in both themes and four widths: node test/pictures.mjs FOLDER
// A developer looks at them before a change of the page is called done.

import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { browser, open, PANELS, tab } from './browser.mjs';
import { Service } from './service.mjs';

const [folder] = process.argv.slice(2);
const SIZES = [
  [1920, 1080],
  [1366, 768],
  [800, 1000],
  [390, 844],
];
/** Long enough for candles, fills, positions and a curve of the profit. */
const MARKET_MS = 30_000;
/** Time in which a panel reads what it shows, and draws it. */
const DRAW_MS = 700;

const service = new Service([
  'demo.on=true',
  'demo.rate=3',
  'demo.cash=1000000',
  'feed.rate=300',
  'service.seed=7',
  'risk.strategies.max_order_qty=10000',
  'risk.strategies.max_position=50000',
]);
const days = Array.from({ length: 30 }, (_, nth) => {
  const [day, profit] = [String(nth + 1).padStart(2, '0'), Math.round(Math.sin(nth * 1.7) * 9_000 + 1_500)];
  return `2026-06-${day},0,2,USD,0,,2,${profit},12.5,${profit - 12.5},USD,${profit},12.5\n`;
});
writeFileSync(join(service.folder, 'profit.csv'), days.join(''));
mkdirSync(folder, { recursive: true });
const [, chrome] = await Promise.all([service.start(), browser()]);
try {
  await new Promise((done) => setTimeout(done, MARKET_MS));
  for (const side of ['BUY', 'SELL'])
    await service.call('POST', '/rest/execution/order/limit', {
      securityId: 1,
      side,
      quantity: 40,
      limit: side === 'BUY' ? 50 : 900,
    });
  // A credit in use and a refusal of a limit, for the panel Risk.
  await service.call('PUT', '/rest/ext/risk', { accountName: 'NEWYORK', credit: 50000, creditCurrency: 'USD' });
  await service
    .call('POST', '/rest/execution/order/market', { securityId: 1, side: 'BUY', quantity: 10001 })
    .catch(() => {});
  for (const theme of ['dark', 'light'])
    for (const [width, height] of SIZES) {
      const page = await open(chrome, service.url, { width, height, theme });
      const take = async (name) => {
        await page.waitForTimeout(DRAW_MS);
        await page.screenshot({ path: join(folder, `${theme}-${width}-${name.replaceAll(/\W/g, '')}.png`) });
      };
      await page.waitForFunction(() =>
        /\d/.test(document.querySelector('tbody tr td:nth-child(2)')?.textContent ?? ''),
      );
      await take('first');
      if (width < 760)
        for (const name of ['Chart', 'Trade', 'Panels']) {
          await page.getByRole('button', { name, exact: true }).click();
          await take(name);
        }
      for (const name of PANELS) {
        await tab(page, name);
        await take(name);
      }
      await tab(page, 'P&L');
      for (const name of ['By strategy', 'By security', 'By day']) {
        await page.getByRole('radio', { name, exact: true }).check({ force: true });
        await take(`PL${name}`);
      }
      const [report] = await Promise.all([
        page.context().waitForEvent('page'),
        page.getByRole('button', { name: 'Report', exact: true }).click(),
      ]);
      await report.setViewportSize({ width, height });
      await report.getByRole('heading', { name: 'Trading report' }).waitFor();
      await report.screenshot({ path: join(folder, `${theme}-${width}-Report.png`), fullPage: true });
      await page.context().close();
    }
} finally {
  await chrome.close();
  await service.remove();
}
