// End-to-end tests of limits and money: what a desk must see before it trusts an order.

import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';

import { act, open, tab } from './browser.mjs';
import { Service } from './service.mjs';

const LIMIT_ORDER = '/rest/execution/order/limit';

/** Registers the tests. `shared` has the browser, and `logIn`. */
export function riskJourneys(shared) {
  /** Waits for a first price: without one, a limit price cannot be checked. */
  const untilPriced = async (service, securityId) => {
    const end = Date.now() + 60_000;
    while ((await service.call('GET', `/rest/ext/quote?securityId=${securityId}`))[0]?.last === undefined) {
      assert(Date.now() < end, 'the service has no price');
      await new Promise((done) => setTimeout(done, 50));
    }
  };
  const limits = (page) => page.getByRole('region', { name: 'Limits' });
  const row = (page, name) => limits(page).getByRole('row').filter({ hasText: name }).first();

  test('limits, their use and refusals are shown, and an operator changes them', async () => {
    const service = await new Service([
      'risk.strategies.max_order_qty=100',
      'risk.strategies.max_position=1000',
      'risk.accounts.max_position=2000',
    ]).start();
    await untilPriced(service, 1);
    await service.call('PUT', '/rest/ext/risk', { accountName: 'NEWYORK', credit: 100000, creditCurrency: 'USD' });
    await service.call('POST', LIMIT_ORDER, { securityId: 1, side: 'BUY', quantity: 90, limit: 150 });
    await service.call('POST', LIMIT_ORDER, {
      securityId: 1,
      side: 'BUY',
      quantity: 80,
      limit: 150,
      strategyName: 'PAIRS',
    });
    await assert.rejects(
      service.call('POST', LIMIT_ORDER, { securityId: 1, side: 'BUY', quantity: 101, limit: 150 }),
      /max-order-qty/,
    );
    const page = await open(shared.chrome, service.url);
    await tab(page, 'Risk');
    await row(page, 'SERVER')
      .getByText(/^90 of 1.000 AAPL$/)
      .waitFor();
    await row(page, 'SERVER').getByRole('cell', { name: '1', exact: true }).waitFor();
    // An account counts its orders of all strategies.
    const account = row(page, 'NEWYORK');
    await account.getByText(/^170 of 2.000 AAPL$/).waitFor();
    await account.getByText(/^25.50\d\.\d+ of 100.000 USD$/).waitFor();
    await row(page, 'SERVER').getByRole('cell').first().click();
    const refusals = page.getByRole('region', { name: 'Refusals of SERVER' });
    await refusals.getByText('the quantity is above the limit for one order').waitFor();

    await act(row(page, 'SERVER').getByRole('button', { name: 'Edit limits of SERVER' }));
    const editor = page.getByRole('dialog', { name: 'Limits of SERVER' });
    const save = editor.getByRole('button', { name: 'Save the limits' });
    assert.equal(await save.isDisabled(), true);
    await editor.getByLabel('Largest position').fill('lots');
    await editor.getByText('“lots” is not a number').waitFor();
    assert.equal(await save.isDisabled(), true);
    await editor.getByLabel('Largest position').fill('95.5');
    await save.click();
    await editor.waitFor({ state: 'detached' });
    const used = row(page, 'SERVER').locator('.warn', { hasText: '90 of 95.5 AAPL' });
    await used.waitFor();
    const { limits: after } = await service.call('GET', '/rest/ext/risk');
    assert.equal(after.find((one) => one.strategyName === 'SERVER').maxPosition, 95.5);
    // The service refuses what the page cannot know to be wrong, and says why.
    await act(row(page, 'SERVER').getByRole('button', { name: 'Edit limits of SERVER' }));
    await editor.getByLabel('Duplicate window in ms').fill('60001');
    await save.click();
    const notices = page.getByRole('log', { name: 'Notices' });
    await notices.getByText('Limits of SERVER: refused by the service').waitFor();
    await notices.getByText('duplicateWindowMs is at most a minute').waitFor();
    await editor.getByRole('button', { name: 'Back' }).click();
    // Only accounts have a credit, which needs its currency.
    await act(account.getByRole('button', { name: 'Edit limits of NEWYORK' }));
    const credit = page.getByRole('dialog', { name: 'Limits of NEWYORK' });
    await credit.getByLabel('Credit', { exact: true }).fill('30,000');
    await credit.getByLabel('Currency of the credit').fill('');
    await credit.getByText('A credit needs its currency').waitFor();
    await credit.getByLabel('Currency of the credit').fill('usd');
    await credit.getByRole('button', { name: 'Save the limits' }).click();
    await account.locator('.warn', { hasText: /^25.50\d\.\d+ of 30.000 USD$/ }).waitFor();
    assert.deepEqual(page.errors, []);
    await page.context().close();
    await service.remove();
  });

  test('a reader sees limits and cannot change them', async () => {
    const service = await new Service().user('eve', 'read', 'correct horse battery').start();
    const page = await open(shared.chrome, service.url);
    await shared.logIn(page, 'eve', 'correct horse battery');
    await tab(page, 'Risk');
    await row(page, 'PAIRS').waitFor();
    await page.getByText('Your role does not permit changes of limits.').waitFor();
    assert.equal(await page.getByRole('button', { name: /^Edit limits/ }).count(), 0);
    const headers = {
      Authorization: `Basic ${btoa('eve:correct horse battery')}`,
      'Content-Type': 'application/json',
    };
    const body = JSON.stringify({ strategyName: 'PAIRS', maxOrderQty: 1 });
    const refused = await fetch(`${service.url}rest/ext/risk`, { method: 'PUT', headers, body });
    assert.equal(refused.status, 403);
    assert.match((await refused.json()).detail, /\w+ \w+/);
    await page.context().close();
    await service.remove();
  });

  test('a large order is confirmed a second time', async () => {
    const service = await new Service(['risk.strategies.max_order_qty=100']).start();
    await untilPriced(service, 1);
    const page = await open(shared.chrome, service.url);
    await page.getByTestId('ticket-symbol').filter({ hasText: 'AAPL' }).waitFor();
    await page.waitForFunction(() => /\d/.test(document.querySelector('.ticket .quote strong')?.textContent ?? ''));
    const openCount = async () => (await service.call('GET', '/rest/execution/order')).length;
    const fill = async (quantity) => {
      await page.getByRole('radio', { name: 'Limit', exact: true }).check({ force: true });
      await page.getByTestId('quantity').fill(String(quantity));
      await page.getByTestId('limit').fill('150.00');
    };
    const untilOpen = (count) =>
      page.waitForFunction(
        (n) => document.querySelector('[data-testid=open-orders]')?.textContent === String(n),
        count,
      );
    const question = page.getByRole('dialog', { name: /^Buy \d+ AAPL at 150.00\?/ });
    await fill(50);
    await page.getByText('! 50 % of the largest order quantity of SERVER (100)').waitFor();
    await page.getByTestId('send').click();
    await question.getByText('This order is large').waitFor();
    await question.getByRole('button', { name: 'Back' }).click();
    await question.waitFor({ state: 'detached' });
    assert.equal(await openCount(), 0);
    await page.getByTestId('send').click();
    await question.getByRole('button', { name: 'Send the large order' }).click();
    await untilOpen(1);
    // A small order is sent at once, and one beyond the limit not at all.
    await fill(49);
    await page.getByTestId('send').click();
    await untilOpen(2);
    await fill(101);
    await page.getByText('At most 100 (SERVER)').waitFor();
    assert.equal(await page.getByTestId('send').isDisabled(), true);
    // A modification that makes an order large is confirmed too.
    const order = page.getByRole('region', { name: 'Orders' }).getByRole('row').filter({ hasText: '49' });
    await act(order.getByRole('button', { name: /^Edit/ }));
    await page.getByLabel('New quantity').fill('90');
    await page.getByRole('button', { name: 'Save', exact: true }).click();
    const change = page.getByRole('dialog', { name: 'Modify BUY 49 AAPL?' });
    await change.getByText('90 % of the largest order quantity of SERVER (100)').waitFor();
    await change.getByRole('button', { name: 'Back' }).click();
    assert.equal(await page.getByLabel('New quantity').inputValue(), '90');
    await page.getByRole('button', { name: 'Save', exact: true }).click();
    await change.getByRole('button', { name: 'Send the large order' }).click();
    await page.getByRole('region', { name: 'Orders' }).getByRole('cell', { name: '90', exact: true }).first().waitFor();
    assert.deepEqual(page.errors, []);
    await page.context().close();
    await service.remove();
  });

  test('the report of live trading opens with its plots, for each login', async () => {
    const service = new Service(['demo.cash=1000000']).user('eve', 'read', 'correct horse battery');
    const days = ['02', '05', '06'].map(
      (day, nth) => `2026-01-${day},0,2,USD,0,,2,${nth * 700 - 400},0.25,0,USD,${nth * 700 - 400},0.25\n`,
    );
    writeFileSync(join(service.folder, 'profit.csv'), days.join(''));
    await service.start();
    const page = await open(shared.chrome, service.url);
    await shared.logIn(page, 'eve', 'correct horse battery');
    await tab(page, 'P&L');
    const button = page.getByRole('button', { name: 'Report', exact: true });
    const [report] = await Promise.all([page.context().waitForEvent('page'), act(button)]);
    const errors = [];
    report.on('console', (message) => message.type() === 'error' && errors.push(message.text()));
    await report.getByRole('heading', { name: 'Trading report' }).waitFor();
    await report.getByText(/^2026-01-02 to .*, 4 trading days; the last one has not ended\.$/).waitFor();
    for (const plot of ['Equity, USD', 'Draw-down, %', 'Daily returns, %'])
      assert.equal(await report.getByRole('img', { name: plot }).count(), 2, plot);
    await report.getByRole('heading', { name: 'All strategies' }).waitFor();
    const result = report.locator('h3:text-is("By month") + div tr').nth(1);
    assert.match(await result.textContent(), /2026-01.*900\.00/);
    // The policy of the page permits its style: numbers are at the right.
    assert.equal(
      await result
        .getByRole('cell')
        .last()
        .evaluate((cell) => getComputedStyle(cell).textAlign),
      'right',
    );
    await report.reload();
    await report.getByRole('heading', { name: 'Trading report' }).waitFor();
    assert.deepEqual([...errors, ...page.errors], []);
    await page.context().close();
    await service.remove();
  });

  test('profit before and after fees, its curve and the log are there after a reload', async () => {
    const service = new Service(['demo.cash=1000000']);
    // An earlier day, as the service has written it.
    const days = '2026-01-02,0,2,USD,0,,2,1234.5,0.25,1234.25,USD,1234.5,0.25\n';
    writeFileSync(join(service.folder, 'profit.csv'), days);
    await service.start();
    await untilPriced(service, 1);
    await service.call('POST', '/rest/execution/order/market', { securityId: 1, side: 'BUY', quantity: 10 });
    const page = await open(shared.chrome, service.url);
    await tab(page, 'P&L');
    const figure = (label) => page.locator('.panel dl > div', { hasText: label }).locator('dd');
    await figure('Fees today').filter({ hasText: '0.05' }).waitFor();
    await figure('Net liquidation')
      .filter({ hasText: /^\s*(3\u202f999|4\u202f000)\u202f\d\d\d\.\d\d USD\s*$/ })
      .waitFor();
    const end = Date.now() + 60_000;
    await page.getByRole('radio', { name: 'By security', exact: true }).check({ force: true });
    const securities = page.getByRole('region', { name: 'Profit by security' });
    await securities.getByRole('row').filter({ hasText: 'AAPL' }).getByText('SERVER').waitFor();
    await page.getByRole('radio', { name: 'By strategy', exact: true }).check({ force: true });
    await page
      .getByRole('region', { name: 'Profit by strategy' })
      .getByRole('row')
      .filter({ hasText: 'SERVER' })
      .waitFor();
    await page.getByRole('combobox', { name: 'Trading day' }).selectOption('2026-01-02');
    await page.getByRole('radio', { name: 'By security', exact: true }).check({ force: true });
    await securities.getByRole('row').filter({ hasText: 'MSFT' }).getByText('+1\u202f234.25').waitFor();
    await page.getByRole('radio', { name: 'By day', exact: true }).check({ force: true });
    await page
      .getByRole('region', { name: 'Profit by day' })
      .getByRole('row')
      .filter({ hasText: '2026-01-02' })
      .getByText('+1\u202f234.25')
      .waitFor();
    // The service has values from before the reload, for which the new page asks.
    let samples = [];
    while (samples.length < 2) {
      assert(Date.now() < end, 'the service keeps no samples');
      samples = await service.call('GET', '/rest/ext/portfolio/history');
      await new Promise((done) => setTimeout(done, 100));
    }
    const past = page.waitForResponse((response) => response.url().endsWith('/rest/ext/portfolio/history'));
    const log = page.waitForResponse((response) => response.url().endsWith('/rest/ext/log'));
    await page.reload();
    assert.equal((await (await past).json())[0].dateTime, samples[0].dateTime);
    assert.equal((await log).status(), 200);
    await page.getByRole('figure', { name: 'Net liquidation over time' }).locator('canvas').waitFor();
    assert.deepEqual(page.errors, []);
    await page.context().close();
    await service.remove();
  });
}
