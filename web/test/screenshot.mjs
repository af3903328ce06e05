// Takes the picture of the page for README and user guide: node test/screenshot.mjs FILE.png
// It shows the simulated market with a demo trader.

import { browser, open } from './browser.mjs';
import { Service } from './service.mjs';

const [file] = process.argv.slice(2);
// Long enough for candles, fills and positions.
const MARKET_MS = 45_000;

const service = new Service(['demo.on=true', 'demo.rate=3', 'demo.cash=1000000', 'feed.rate=300', 'service.seed=7']);
const [, chrome] = await Promise.all([service.start(), browser()]);
try {
  const page = await open(chrome, service.url, { width: 1440, height: 900 });
  await page.getByLabel('Search securities').fill('AAPL');
  await page.getByRole('region', { name: 'Market data' }).getByRole('row').filter({ hasText: 'AAPL' }).first().click();
  await page.getByLabel('Search securities').fill('');
  await page.waitForTimeout(MARKET_MS);
  await page.getByTestId('quantity').fill('10');
  const bid = await page.locator('.ticket .quote', { hasText: 'Bid' }).locator('strong').textContent();
  // Below the bid, so that it does not cross the market before the picture is taken.
  await page.getByTestId('limit').fill((Number(bid.replace(/[^\d.]/g, '')) - 0.25).toFixed(2));
  await page.evaluate(() => document.activeElement?.blur());
  if (page.errors.length > 0) throw new Error(page.errors.join('\n'));
  await page.screenshot({ path: file });
} finally {
  await chrome.close();
  await service.remove();
}
