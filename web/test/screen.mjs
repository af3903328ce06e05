// End-to-end tests of what the page shows on screens of all widths and in several languages, and of
// tables with a filter. They use the browser, the service and actions of the other journeys.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { PANELS, hold, open, tab } from './browser.mjs';
import { Service } from './service.mjs';

/** Long runs, which `make web-test FULL=1` includes. */
const only = { skip: process.env.FULL ? false : 'only with FULL=1' };

/** Waits until the first price of the market is shown. */
const untilPriced = (page) =>
  page.waitForFunction(() => /\d/.test(document.querySelector('tbody tr td:nth-child(2)')?.textContent ?? ''));

/** Registers the tests. `shared` has the page, the browser, the service, and actions on the page. */
export function screenJourneys(shared) {
  const order = (body) => shared.service.call('POST', '/rest/execution/order/market', body);

  test('a narrow screen cuts no number and no symbol, and groups positions by strategy', async () => {
    for (const strategyName of ['SERVER', 'PAIRS'])
      await order({ securityId: 1, side: 'BUY', quantity: 1_234, strategyName });
    const page = await open(shared.chrome, shared.service.url, { width: 390, height: 844, theme: 'light' });
    await untilPriced(page);
    const cuts = () =>
      page.evaluate(() => {
        const texts = [...document.querySelectorAll('tbody td.num .cell-text, tbody td:first-child')];
        const isCut = (node) => getComputedStyle(node).overflowX !== 'visible' && node.scrollWidth > node.clientWidth;
        return texts.filter((node) => node.textContent !== '' && isCut(node)).map((node) => node.textContent);
      });
    // NQZ7 has the longest prices, and options have the longest symbols.
    await page.getByRole('region', { name: 'Market data' }).getByText('NQZ7').waitFor();
    assert.deepEqual(await cuts(), []);
    await page.getByRole('button', { name: 'Panels', exact: true }).click();
    for (const name of ['Transactions', 'Latency', 'Positions']) {
      await tab(page, name);
      await page.getByRole('region').locator('tbody td.num', { hasText: /\d/ }).first().waitFor();
      assert.deepEqual(await cuts(), [], name);
    }
    const groups = page.getByRole('region', { name: 'Positions' }).locator('tr.group');
    for (const name of ['SERVER', 'PAIRS']) await groups.filter({ hasText: name }).waitFor();
    await page.context().close();
    for (const strategyName of ['SERVER', 'PAIRS'])
      await order({ securityId: 1, side: 'SELL', quantity: 1_234, strategyName });
  });

  test('every table has a filter', async () => {
    const page = await open(shared.chrome, shared.service.url);
    const filtered = async (name) => {
      const filter = page.getByRole('tabpanel').getByRole('searchbox').first();
      await filter.fill('no row has this');
      await page.waitForFunction(() => document.querySelector('[role=tabpanel] tbody tr[aria-rowindex]') === null);
      await filter.press('Escape');
      assert.equal(await filter.inputValue(), '', name);
    };
    for (const name of PANELS.filter((name) => name !== 'P&L')) {
      await tab(page, name);
      await filtered(name);
    }
    await tab(page, 'P&L');
    for (const name of ['By strategy', 'By security', 'By day']) {
      await page.getByRole('radio', { name, exact: true }).check({ force: true });
      await filtered(name);
    }
    assert.deepEqual(page.errors, []);
    await page.context().close();
  });

  test('a decimal comma is read where the language writes one', async () => {
    const page = await open(shared.chrome, shared.service.url, { locale: 'de-DE' });
    await page.getByTestId('ticket-symbol').filter({ hasText: 'AAPL' }).waitFor();
    await page.getByRole('radio', { name: 'Limit', exact: true }).check({ force: true });
    await page.getByTestId('quantity').fill('1 500');
    await page.getByTestId('limit').fill('100,25');
    await page.getByTestId('send').filter({ hasText: 'Buy 1\u202f500 AAPL at 100.25' }).waitFor();
    await page.context().close();
  });

  test('the depth has bars for sizes below one', async () => {
    const { page } = shared;
    await shared.choose('BTCUSD');
    const bids = page.getByRole('list', { name: 'Bids' }).getByRole('listitem');
    await bids.filter({ hasText: /0\.\d/ }).nth(2).waitFor();
    const widths = await bids.evaluateAll((rows) =>
      rows.map((row) => row.querySelector('.bar').getBoundingClientRect().width / row.getBoundingClientRect().width),
    );
    assert.ok(widths.length > 2 && widths.every((width) => width > 0 && width <= 1.01), widths.join());
    await shared.choose('AAPL');
  });

  test('a limit of the market data does not slow the selected security', async () => {
    const service = await new Service(['broker.maxRatePerConnection=5', 'feed.rate=1000']).start();
    const page = await open(shared.chrome, service.url, { height: 1200 });
    await untilPriced(page);
    // Its share of the limit would be one price in ten seconds, if it had no connection of its own.
    await page.evaluate(async () => {
      const text = () => document.querySelector('[aria-label=Bids] li')?.textContent;
      for (let [before, changes] = ['', 0]; changes < 8; before = text()) {
        await new Promise(requestAnimationFrame);
        if (text() !== before) changes += 1;
      }
    });
    assert.deepEqual(page.errors, []);
    await page.context().close();
    await service.remove();
  });

  test('a page whose own thread was blocked waits for the next heart-beat', only, async () => {
    const page = await open(shared.chrome, shared.service.url);
    const lamp = page.getByTestId('lamp');
    await lamp.filter({ hasText: 'Connected' }).waitFor();
    const { isReported, received } = await page.evaluate(async () => {
      let isReported = false;
      const lampText = () => document.querySelector('[data-testid=lamp]').textContent;
      const observer = new MutationObserver(() => {
        isReported ||= document.body.textContent.includes('No connection') || lampText().includes('No heart-beat');
      });
      observer.observe(document.body, { subtree: true, childList: true, characterData: true });
      for (const end = performance.now() + 14_000; performance.now() < end;);
      // Prices go on over the same connection.
      const price = () => document.querySelector('tbody tr td:nth-child(3)').textContent;
      let received = 0;
      for (let before = price(); received < 3; before = price()) {
        await new Promise((done) => setTimeout(done, 100));
        if (price() !== before) received += 1;
      }
      return { isReported, received };
    });
    assert.deepEqual({ isReported, received }, { isReported: false, received: 3 });
    assert.deepEqual(page.errors, []);
    await page.context().close();
  });

  test('10,000 open orders are gone with one action', only, async () => {
    const count = 10_000;
    const service = await new Service([
      'feed.rate=5000',
      'risk.strategies.max_orders_per_s=0',
      `risk.strategies.max_open_orders=${2 * count}`,
    ]).start();
    const page = await open(shared.chrome, service.url);
    const send = (nth) =>
      service.call('POST', '/rest/execution/order/limit', {
        securityId: 1 + (nth % 10),
        side: 'BUY',
        quantity: 1,
        limit: 0.05,
      });
    for (let sent = 0; sent < count; sent += 100)
      await Promise.all(Array.from({ length: 100 }, (_, at) => send(sent + at)));
    const shown = (number) =>
      page.waitForFunction(
        (text) => document.querySelector('[data-testid=open-orders]')?.textContent === text,
        String(number),
        { timeout: 120_000 },
      );
    await shown(count);
    await hold(page, page.getByRole('button', { name: /^Cancel all/ }));
    await page.getByText(`Cancel all: ${count} cancelled`).waitFor({ timeout: 120_000 });
    await shown(0);
    assert.deepEqual(await service.call('GET', '/rest/execution/order'), []);
    assert.deepEqual(page.errors, []);
    await page.context().close();
    await service.remove();
  });
}
