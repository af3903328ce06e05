// End-to-end tests: user journeys of a trader and an operator, in a real browser against the real
// binary.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { after, before, test } from 'node:test';

import { PANELS, act, browser, hold, open, tab, withoutTicks } from './browser.mjs';
import { chartJourneys } from './chart.mjs';
import { deskJourneys } from './desk.mjs';
import { FixClient } from './fix.mjs';
import { riskJourneys } from './risk.mjs';
import { screenJourneys } from './screen.mjs';
import { Service } from './service.mjs';

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

let service, chrome, page;
before(async () => {
  [service, chrome] = await Promise.all([new Service().start(), browser()]);
  page = await open(chrome, service.url);
});
after(async () => {
  await chrome?.close();
  await service?.remove();
});

const row = (symbol) =>
  page.getByRole('region', { name: 'Market data' }).getByRole('row').filter({ hasText: symbol }).first();
const orderRows = () => page.getByRole('region', { name: 'Orders' }).getByRole('row');
const choose = async (symbol) => {
  await page.getByLabel('Search securities').fill(symbol);
  await row(symbol).click();
  await page.getByLabel('Search securities').fill('');
  await page.getByTestId('ticket-symbol').filter({ hasText: symbol }).waitFor();
};
const quote = async (which) =>
  Number(
    (await page.locator('.ticket .quote', { hasText: which }).locator('strong').textContent()).replace(/[^\d.]/g, ''),
  );
const write = async ({ side = 'Buy', type, quantity, limit, stop }) => {
  await page.getByRole('radio', { name: side, exact: true }).check({ force: true });
  await page.getByRole('radio', { name: type, exact: true }).check({ force: true });
  await page.getByTestId('quantity').fill(String(quantity));
  if (limit !== undefined) await page.getByTestId('limit').fill(limit.toFixed(2));
  if (stop !== undefined) await page.getByTestId('stop').fill(stop.toFixed(2));
};
const send = async () => page.getByTestId('send').click();
/** Moves the pointer to where no table is, because tables stand still under the pointer. */
const pointAway = () => page.mouse.move(500, 5);
const openOrders = async () => Number(await page.getByTestId('open-orders').textContent());
const untilOpen = (count) =>
  page.waitForFunction((n) => document.querySelector('[data-testid=open-orders]')?.textContent === String(n), count);

test('prices appear and change', async () => {
  const cell = row('AAPL').getByRole('cell').nth(2);
  await page.waitForFunction(() => /\d/.test(document.querySelector('tbody tr td:nth-child(3)')?.textContent ?? ''));
  const first = await cell.textContent();
  await page.waitForFunction((text) => document.querySelector('tbody tr td:nth-child(3)')?.textContent !== text, first);
});

test('a new page shows the past of the market', async () => {
  const bars = async () => (await fetch(`${service.url}rest/ext/bars?securityId=1&interval=1s`)).json();
  const end = Date.now() + 60_000;
  let past = 0;
  while ((past = (await bars()).length) < 5) {
    assert(Date.now() < end, 'the service has no bars');
    await new Promise((done) => setTimeout(done, 100));
  }
  const other = await open(chrome, service.url, { sockets: withoutTicks });
  await other.getByRole('radio', { name: '1s', exact: true }).check({ force: true });
  await other.waitForFunction((count) => {
    const label = document.querySelector('[role=application]')?.getAttribute('aria-label') ?? '';
    return label.endsWith('candles of AAPL') && Number.parseInt(label) >= count;
  }, past);
  await other.getByRole('columnheader', { name: 'Chg %' }).first().waitFor();
  assert.deepEqual(other.errors, []);
  await other.context().close();
});

test('each of the four order types is accepted', async () => {
  await choose('AAPL');
  const [bid, ask] = [await quote('Bid'), await quote('Ask')];
  await write({ type: 'Limit', quantity: 10, limit: bid * 0.9 });
  await send();
  await untilOpen(1);
  await write({ type: 'Stop', quantity: 20, stop: ask * 1.2 });
  await send();
  await untilOpen(2);
  await write({ side: 'Sell', type: 'Stop limit', quantity: 30, stop: bid * 0.8, limit: bid * 0.79 });
  await send();
  await untilOpen(3);
  await write({ type: 'Market', quantity: 40 });
  await send();
  await orderRows()
    .filter({ hasText: 'market' })
    .filter({ hasText: /filled/i })
    .first()
    .waitFor();
  // The order may fill in parts, and is open until the last one.
  await untilOpen(3);
});

test('an order with an invalid quantity or price cannot be sent', async () => {
  await write({ type: 'Limit', quantity: 1.5, limit: 100 });
  assert.equal(await page.getByTestId('send').isDisabled(), true);
  await page.getByText('Must be a multiple of 1', { exact: false }).first().waitFor();
  await write({ type: 'Limit', quantity: 1, limit: 100 });
  await page.getByTestId('limit').fill('100.005');
  assert.equal(await page.getByTestId('send').isDisabled(), true);
});

test('an order is modified in its row', async () => {
  const order = orderRows().filter({ hasText: 'limit' }).filter({ hasText: 'BUY' }).filter({ hasText: 'New' }).first();
  await act(order.getByRole('button', { name: /^Edit/ }));
  await page.getByLabel('New quantity').fill('11');
  await page.getByRole('button', { name: 'Save', exact: true }).click();
  await orderRows()
    .filter({ hasText: 'New' })
    .filter({ has: page.getByRole('cell', { name: '11', exact: true }) })
    .first()
    .waitFor();
});

test('an order is cancelled in its row, and all orders by holding the button', async () => {
  const order = orderRows().filter({ hasText: 'BUY' }).filter({ hasText: 'New' }).first();
  await act(order.getByRole('button', { name: /^Cancel/ }));
  await untilOpen(2);
  await hold(page, page.getByRole('button', { name: /^Cancel all/ }));
  await untilOpen(0);
});

test('a position is reduced, then closed', async () => {
  await tab(page, 'Positions');
  const position = page.getByRole('region', { name: 'Positions' }).getByRole('row').filter({ hasText: 'AAPL' });
  await position.getByRole('cell', { name: '40', exact: true }).waitFor();
  await act(position.getByRole('button', { name: /^Reduce/ }));
  await page.getByRole('dialog').getByRole('slider').fill('25');
  await page.getByRole('button', { name: 'Reduce by 10' }).click();
  await position.getByRole('cell', { name: '30', exact: true }).waitFor();
  const close = position.getByRole('button', { name: /^Close/ });
  await act(close);
  await page.getByRole('dialog', { name: 'Close AAPL?' }).getByRole('button', { name: 'Back' }).click();
  await act(close);
  await page.getByRole('button', { name: 'Close the position' }).click();
  await page.getByText('No positions').waitFor();
});

test('a position that changes its side changes its colour', async () => {
  // Once the text changed and the colour did not.
  const side = page
    .getByRole('region', { name: 'Positions' })
    .getByRole('row')
    .filter({ hasText: 'MSFT' })
    .getByRole('cell')
    .nth(2)
    .locator('span');
  for (const [order, quantity, word, look] of [
    ['BUY', 5, 'long', 'up'],
    ['SELL', 9, 'short', 'down'],
    ['BUY', 6, 'long', 'up'],
  ]) {
    await pointAway();
    await service.call('POST', '/rest/execution/order/market', { securityId: 2, side: order, quantity });
    await side.filter({ hasText: word }).waitFor();
    assert.ok((await side.getAttribute('class')).split(' ').includes(look), word);
  }
  await service.call('POST', '/rest/execution/order/market', { securityId: 2, side: 'SELL', quantity: 2 });
  await page.getByText('No positions').waitFor();
});

test('transactions are listed and saved as CSV', async () => {
  await tab(page, 'Transactions');
  await page.getByRole('region', { name: 'Transactions' }).getByRole('row').nth(3).waitFor();
  const [download] = await Promise.all([
    page.waitForEvent('download'),
    page.getByRole('button', { name: 'Save as CSV' }).click(),
  ]);
  const text = readFileSync(await download.path(), 'utf8');
  assert.match(text, /^id,uuid,dateTime,type,.*\r\n/);
  assert.match(text, /,BUY,SERVER,NEWYORK,AAPL,\d+,/);
});

test('every panel opens', async () => {
  // The last one is that of the tests that follow.
  for (const name of [...PANELS, 'Orders']) {
    await tab(page, name);
    await page.getByRole('tabpanel').first().locator('*').first().waitFor();
  }
});

test('a strategy is stopped and started again', async () => {
  await tab(page, 'Strategies');
  const strategy = page.getByRole('region', { name: 'Strategies' }).getByRole('row').filter({ hasText: 'PAIRS' });
  await strategy.getByRole('button', { name: 'Stop PAIRS' }).click();
  await strategy.getByText('STOP', { exact: true }).waitFor();
  await strategy.getByRole('button', { name: 'Start PAIRS' }).click();
  await strategy.getByText('RUNNING', { exact: true }).waitFor();
  assert.equal(await page.getByRole('button', { name: 'Stop SERVER' }).count(), 0);
});

test('every stage of the latencies is listed', async () => {
  await tab(page, 'Latency');
  const stages = await service.call('GET', '/rest/ext/latency');
  const table = page.getByRole('region', { name: 'Latency by stage' });
  for (const { thread, stage } of stages.slice(0, 5)) {
    await table
      .getByRole('row')
      .filter({ hasText: thread })
      .filter({ has: page.getByRole('cell', { name: stage, exact: true }) })
      .first()
      .waitFor();
  }
  await page
    .getByRole('figure', { name: /^Latency of/ })
    .locator('canvas')
    .waitFor();
});

test('messages of a pattern are shown', async () => {
  await tab(page, 'Topics');
  await page.getByLabel('Pattern of topics').fill('tick.*');
  await page.getByRole('button', { name: 'Listen' }).click();
  await page.getByRole('region', { name: 'Messages' }).getByText('"type":"TICK"').first().waitFor();
  await page.getByRole('button', { name: 'Stop listening to tick.*' }).click();
});

test('an order of another client appears without a reload', async () => {
  await tab(page, 'Orders');
  const before = await openOrders();
  await service.call('POST', '/rest/execution/order/limit', { securityId: 2, side: 'BUY', quantity: 7, limit: 100 });
  await untilOpen(before + 1);
});

test('an order of a FIX client appears with its session, and can be cancelled', async () => {
  await tab(page, 'Orders');
  await pointAway();
  // Only a wide table has room for the source of an order.
  await page.setViewportSize({ width: 1920, height: 1080 });
  const client = await new FixClient().open(service.addresses.fix);
  client.order({ id: 'FIX-1', security: 3, symbol: 'NVDA', side: 1, quantity: 6, limit: 100 });
  const order = orderRows().filter({ hasText: 'NVDA' }).filter({ hasText: 'New' });
  await order.first().waitFor();
  await order.first().getByText(/^FIX/).waitFor();
  const [found] = (await service.call('GET', '/rest/execution/order')).filter((one) => one.symbol === 'NVDA');
  assert.match(found.source, /^FIX/);
  await act(order.first().getByRole('button', { name: /^Cancel/ }));
  await client.waitFor('39=4');
  client.close();
  await page.setViewportSize({ width: 1280, height: 800 });
});

test('no column of a table is cut, on wide and narrow screens', async () => {
  for (const [width, height] of [
    [800, 1000],
    [1440, 900],
  ]) {
    await page.setViewportSize({ width, height });
    for (const name of ['Positions', 'Transactions', 'Risk', 'Sessions', 'Orders']) {
      await tab(page, name);
      const table = page.getByRole('region', { name: name === 'Risk' ? 'Limits' : name, exact: true });
      await table.locator('thead th').first().waitFor();
      const element = await table.elementHandle();
      await page.waitForFunction((scroller) => scroller.scrollWidth <= scroller.clientWidth, element);
    }
  }
  await page.getByRole('region', { name: 'Orders' }).getByRole('columnheader', { name: 'Strategy' }).waitFor();
  await page.setViewportSize({ width: 1280, height: 800 });
});

test('the kill switch cancels orders, refuses new ones, and is lifted', async () => {
  await hold(page, page.getByRole('button', { name: /^Kill switch/ }));
  await page.getByText('The kill switch is on.').waitFor();
  await untilOpen(0);
  await choose('AAPL');
  await write({ type: 'Limit', quantity: 1, limit: 100 });
  assert.equal(await page.getByTestId('send').isDisabled(), true);
  await hold(page, page.getByRole('button', { name: /^Lift kill switch/ }));
  await page.getByText('The kill switch is on.').waitFor({ state: 'detached' });
});

test('the page recovers from a restart of the service', async () => {
  await service.call('POST', '/rest/execution/order/limit', { securityId: 1, side: 'BUY', quantity: 9, limit: 90 });
  await untilOpen(1);
  await service.end('SIGKILL');
  await page.getByText('No connection to the service').waitFor();
  assert.equal(await page.getByTestId('send').isDisabled(), true);
  await service.start();
  await page.getByText('No connection to the service').waitFor({ state: 'detached' });
  await untilOpen(1);
  await service.call('POST', '/rest/execution/order/limit', { securityId: 1, side: 'BUY', quantity: 8, limit: 91 });
  await untilOpen(2);
});

const shared = {
  get page() {
    return page;
  },
  get chrome() {
    return chrome;
  },
  get service() {
    return service;
  },
  choose,
  write,
  untilOpen,
  openOrders,
  pointAway,
  orderRows,
};
deskJourneys(shared);
chartJourneys(shared);
screenJourneys(shared);

test('one logs in where that is asked for, and sees only what one may do', async () => {
  const guarded = await new Service().user('eve', 'read', 'correct horse battery').start();
  const other = await open(chrome, guarded.url);
  await other.getByRole('dialog', { name: 'Log in to Pitlane' }).waitFor();
  const secret = other.locator('dialog input[type=password]');
  await other.getByPlaceholder('empty for a token').fill('eve');
  await secret.fill('wrong');
  await other.getByRole('button', { name: 'Log in' }).click();
  await other.getByText('the login or the secret is wrong').waitFor();
  await secret.fill('correct horse battery');
  await other.getByRole('button', { name: 'Log in' }).click();
  await other.getByText('Your role does not permit trading.').waitFor();
  await other.waitForFunction(() => /\d/.test(document.querySelector('tbody tr td:nth-child(3)')?.textContent ?? ''));
  assert.equal(await other.getByRole('button', { name: /^Kill switch/ }).count(), 0);
  assert.equal(await other.getByTestId('send').count(), 0);
  await other.context().close();
  await guarded.remove();
});

/** Logs in through the dialog; an empty name means a token. */
const logIn = async (other, name, secret) => {
  await other.getByRole('dialog', { name: 'Log in to Pitlane' }).waitFor();
  await other.getByPlaceholder('empty for a token').fill(name);
  await other.locator('dialog input[type=password]').fill(secret);
  await other.getByRole('button', { name: 'Log in' }).click();
};
riskJourneys({
  get chrome() {
    return chrome;
  },
  logIn,
});

/** Waits until a price changes. Prices change only over STOMP. */
const waitForPriceChange = async (other) => {
  const price = () => document.querySelector('tbody tr td:nth-child(3)')?.textContent ?? '';
  await other.waitForFunction(() => /\d/.test(document.querySelector('tbody tr td:nth-child(3)')?.textContent ?? ''));
  const first = await other.evaluate(price);
  await other.waitForFunction(
    (text) => document.querySelector('tbody tr td:nth-child(3)')?.textContent !== text,
    first,
  );
  assert.equal(await other.getByText('No connection to the service').count(), 0);
};

test('prices change with every kind of login', async () => {
  const guarded = new Service();
  const token = guarded.token('robot', 'trade');
  await guarded.user('eve', 'read', 'correct horse battery').start();
  for (const [name, secret] of [
    ['', token],
    ['robot', token],
    ['eve', 'correct horse battery'],
  ]) {
    const other = await open(chrome, guarded.url);
    await logIn(other, name, secret);
    await waitForPriceChange(other);
    await other.context().close();
  }
  await guarded.remove();
  // Without a required login.
  const other = await open(chrome, service.url);
  await waitForPriceChange(other);
  await other.context().close();
});

test('a refused login for live data is tried once and reported', async () => {
  const guarded = new Service();
  const token = guarded.token('robot', 'trade');
  await guarded.start();
  let attempts = 0;
  let isRefusing = true;
  const refuse = (socket) => {
    if (!isRefusing) {
      socket.connectToServer();
      return;
    }
    socket.onMessage((frame) => {
      // The page connects without a login before it shows the dialog.
      if (frame.includes('passcode:')) attempts += 1;
      socket.send('ERROR\nmessage:login or passcode is wrong\n\n\0');
      void socket.close();
    });
  };
  const other = await open(chrome, guarded.url, { sockets: refuse });
  await logIn(other, '', token);
  await other.getByText('The service refused the login for live data.').waitFor();
  // The page continues to poll REST, but does not connect again.
  await tab(other, 'Sessions');
  for (let n = 0; n < 3; n += 1)
    await other.waitForResponse((response) => response.url().includes('/rest/ext/session'));
  assert.equal(attempts, 1);
  isRefusing = false;
  await other.getByRole('button', { name: 'Try again' }).click();
  await other.getByText('The service refused the login for live data.').waitFor({ state: 'detached' });
  await waitForPriceChange(other);
  await other.context().close();
  await guarded.remove();
});

for (const [width, theme] of [
  [1280, 'dark'],
  [1280, 'light'],
  [390, 'light'],
]) {
  test(`no panel has an accessibility fault in ${theme} at ${width}`, async () => {
    const other = await open(chrome, service.url, { width, height: 844, theme });
    await other.waitForFunction(() => /\d/.test(document.querySelector('tbody tr td:nth-child(2)')?.textContent ?? ''));
    await other.evaluate(AXE);
    const violationsOf = async (part) => {
      const { violations } = await other.evaluate(
        (part) => globalThis.axe.run(part, { runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa'] }),
        part,
      );
      return violations.map(({ id, nodes }) => `${id}: ${nodes[0].html.slice(0, 160)} ${nodes[0].failureSummary}`);
    };
    assert.deepEqual(await violationsOf('body'), []);
    if (width < 760) {
      for (const name of ['Chart', 'Trade', 'Panels']) {
        await other.getByRole('button', { name, exact: true }).click();
        assert.deepEqual(await violationsOf('body'), [], name);
      }
    }
    for (const name of PANELS) {
      await tab(other, name);
      await other.getByRole('tabpanel').first().locator('*').first().waitFor();
      assert.deepEqual(await violationsOf('section.dock'), [], name);
    }
    await other.context().close();
  });
}

test('the browser reports no errors', () => assert.deepEqual(page.errors, []));
