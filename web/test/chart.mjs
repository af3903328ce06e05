// End-to-end tests of the chart, the trades and the depth of the selected security. They use the
// browser, the service and the page of the other journeys.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { open, tab, withoutTicks } from './browser.mjs';
import { Service } from './service.mjs';

const number = (text) => Number(text.replace('−', '-').replace(/[^\d.-]/g, ''));

/** Registers the tests. `shared` has the page, the browser, the service, and actions on the page. */
export function chartJourneys(shared) {
  const { choose, pointAway } = shared;
  const chart = (page) => page.getByRole('application', { name: /candles of/ });
  const readout = (page) => page.getByTestId('readout');
  /** Returns the values of the bar at the cross-hair. */
  const valuesOf = async (page) => {
    const text = (await readout(page).textContent()).replace(/\s+/g, ' ');
    const value = (name) => number(new RegExp(`${name} ([\\d.  ]+)`).exec(text)?.[1] ?? 'x');
    return { open: value('O'), high: value('H'), low: value('L'), close: value('C'), volume: value('Vol'), text };
  };
  const selectLength = (page, name) => page.getByRole('radio', { name, exact: true }).check({ force: true });
  /** Returns the limit of the open order of a quantity. A modification changes the id of an order. */
  const limitOf = async (quantity) => {
    const orders = await shared.service.call('GET', '/rest/execution/order');
    return orders.find((order) => order.quantity === quantity)?.limit;
  };
  const until = async (what, is) => {
    const end = Date.now() + 30_000;
    while (!(await is())) {
      assert(Date.now() < end, what);
      await new Promise((done) => setTimeout(done, 50));
    }
  };

  test('the chart has bars of each length, and reads out those of the service', async () => {
    const bars = () => shared.service.call('GET', '/rest/ext/bars?securityId=1&interval=1s&limit=480');
    await until('the service has no bars', async () => (await bars()).length > 8);
    const other = await open(shared.chrome, shared.service.url, { sockets: withoutTicks });
    for (const length of ['10s', '1m', '5m', '15m', '1h', '1d', '1s']) {
      await selectLength(other, length);
      await readout(other)
        .getByText(/O [\d.]+ H [\d.]+ L [\d.]+ C [\d.]+/)
        .waitFor();
    }
    await other.waitForFunction(() => {
      const label = document.querySelector('[role=application]')?.getAttribute('aria-label') ?? '';
      return Number.parseInt(label) > 8;
    });
    // The first bar has ended, so its values are final.
    await chart(other).focus();
    await other.keyboard.press('Home');
    await until('the read-out differs from every bar of the service', async () => {
      const shown = await valuesOf(other);
      return (await bars()).some((bar) =>
        ['open', 'high', 'low', 'close', 'volume'].every((name) => bar[name] === shown[name]),
      );
    });
    assert.deepEqual(other.errors, []);
    await other.context().close();
  });

  test('indicators are switched on, follow their period, and are kept', async () => {
    const other = await open(shared.chrome, shared.service.url, { sockets: withoutTicks });
    await selectLength(other, '1s');
    await other.getByRole('button', { name: 'Indicators' }).click();
    for (const name of ['SMA', 'EMA', 'VWAP', 'RSI']) await other.getByLabel(name, { exact: true }).check();
    const period = other.getByLabel(/^Period of SMA/);
    await period.fill('not a number');
    await period.press('Enter');
    assert.equal(await period.inputValue(), '20');
    await period.fill('3');
    await period.press('Enter');
    await other.keyboard.press('Escape');
    await readout(other)
      .getByText(/SMA 3\s+\d/)
      .waitFor();
    await readout(other)
      .getByText(/VWAP\s+\d/)
      .waitFor();
    await readout(other)
      .getByText(/RSI 14/)
      .waitFor();
    // The average is that of the closes that the cross-hair reads out.
    await chart(other).focus();
    await other.keyboard.press('Home');
    const closes = [];
    let average = '';
    for (let at = 0; at < 3; at++) {
      if (at > 0) {
        const { text } = await valuesOf(other);
        await other.keyboard.press('ArrowRight');
        await other.waitForFunction(
          (before) => document.querySelector('[data-testid=readout]').textContent.replace(/\s+/g, ' ') !== before,
          text,
        );
      }
      const { close, text } = await valuesOf(other);
      closes.push(close);
      average = /SMA 3 (\S+)/.exec(text)[1];
    }
    const mean = closes.reduce((sum, close) => sum + close, 0) / 3;
    assert.ok(Math.abs(number(average) - mean) < 0.006, `${average} of ${closes}`);
    await other.waitForFunction(() => localStorage.getItem('pitlane.settings')?.includes('"period":3'));
    await other.reload();
    await readout(other)
      .getByText(/SMA 3\s/)
      .waitFor();
    assert.deepEqual(other.errors, []);
    await other.context().close();
  });

  test('own fills of a bar are merged by side', async () => {
    const other = await open(shared.chrome, shared.service.url);
    await selectLength(other, '1d');
    for (const quantity of [2, 3]) {
      await shared.service.call('POST', '/rest/execution/order/market', { securityId: 1, side: 'BUY', quantity });
    }
    await readout(other)
      .getByText(/▲ Bought\s+\d+ at [\d.]+ \(\d+ fills\)/)
      .waitFor();
    await shared.service.call('POST', '/rest/execution/order/market', { securityId: 1, side: 'SELL', quantity: 5 });
    await readout(other)
      .getByText(/▼ Sold\s+\d+ at [\d.]+/)
      .waitFor();
    await until('the sums differ from the transactions', async () => {
      const rows = await shared.service.call('GET', '/rest/transaction/daily');
      const bought = rows
        .filter(({ securityId, type }) => securityId === 1 && type === 'BUY')
        .reduce((sum, { quantity }) => sum + quantity, 0);
      return (await valuesOf(other)).text.includes(`Bought ${bought} at`);
    });
    await other.context().close();
  });

  test('the line of an order is dragged to another price, and returns if that is refused', async () => {
    const { page, service } = shared;
    await choose('AAPL');
    await selectLength(page, '1s');
    // Other orders would widen the scale, and the line could be dragged beyond the market.
    await service.call('DELETE', '/rest/execution/order?all=true');
    const last = (await service.call('GET', '/rest/ext/quote?securityId=1'))[0].last;
    const limit = Number((last * 0.9).toFixed(2));
    await service.call('POST', '/rest/execution/order/limit', { securityId: 1, side: 'BUY', quantity: 77, limit });
    await page.getByRole('button', { name: /▼ \d order prices? below/ }).click();
    const line = page.getByRole('slider', { name: /^Price of BUY 77\b/ });
    await line.waitFor();
    const price = async () => number(await line.getAttribute('aria-valuetext'));
    assert.equal(await price(), limit);
    const dialog = page.getByRole('dialog', { name: /^Move BUY 77 AAPL to/ });
    /** Drags the line, and returns the price at which it was dropped. */
    const drag = async (by) => {
      const box = await line.boundingBox();
      const [x, y] = [box.x + box.width / 2, box.y + box.height / 2];
      await page.mouse.move(x, y);
      await page.mouse.down();
      await page.mouse.move(x, y + by / 2, { steps: 3 });
      await page.mouse.move(x, y + by, { steps: 3 });
      await page.mouse.up();
      const [, dropped] = /to ([\d.]+)\?/.exec(await dialog.textContent());
      return Number(dropped);
    };
    const move = async () => {
      await page.getByRole('button', { name: 'Move the order' }).click();
      await dialog.waitFor({ state: 'detached' });
    };

    // The user changes their mind.
    assert.ok((await drag(-30)) > limit);
    await dialog.getByRole('button', { name: 'Back' }).click();
    await dialog.waitFor({ state: 'detached' });
    await until('the line does not return', async () => (await price()) === limit);
    assert.equal(await limitOf(77), limit);

    // The user moves the order.
    const dropped = await drag(-30);
    await move();
    await until('the order is not moved', async () => (await limitOf(77)) === dropped);
    await until('the line is not at the order', async () => (await price()) === dropped);

    // The service refuses: the new price is too far from the last one.
    await service.call('PUT', '/rest/ext/risk', { strategyName: 'SERVER', priceCollarPct: 0.1 });
    await drag(12);
    await move();
    await page
      .getByRole('log', { name: 'Notices' })
      .getByText(/Modify BUY 77 AAPL/)
      .filter({ hasText: /refused|collar/i })
      .first()
      .waitFor();
    await until('the line does not return', async () => (await price()) === dropped);
    assert.equal(await limitOf(77), dropped);
    await service.call('PUT', '/rest/ext/risk', { strategyName: 'SERVER', priceCollarPct: 0 });

    // Keys instead of the pointer.
    await line.focus();
    await page.keyboard.press('ArrowUp');
    await page.keyboard.press('ArrowUp');
    assert.equal((await price()).toFixed(2), (dropped + 0.02).toFixed(2));
    await page.keyboard.press('Escape');
    assert.equal(await price(), dropped);
    await page.keyboard.press('Shift+ArrowUp');
    await page.keyboard.press('Enter');
    await move();
    await until('the order is not moved by keys', async () => Math.abs((await limitOf(77)) - dropped - 0.1) < 0.001);
    await service.call('DELETE', '/rest/execution/order?all=true');
    await line.waitFor({ state: 'detached' });
    await pointAway();
  });

  test('time and sales show trades with their direction, from the past on', async () => {
    const { page, service } = shared;
    await choose('AAPL');
    const ticks = await service.call('GET', '/rest/ext/ticks?securityId=1&limit=100');
    const past = ticks.findLast(({ last }) => last !== undefined);
    await tab(page, 'Trades');
    const rows = page.getByRole('region', { name: 'Trades of AAPL' }).getByRole('row');
    const filter = page.getByLabel('Filter: Trades of AAPL');
    // A trade of the time before the panel was opened, by its minute, second and milliseconds.
    const [, minute, part = ''] = /:(\d\d:\d\d)(?:\.(\d+))?Z$/.exec(past.dateTime);
    await filter.fill(`${minute}.${part.padEnd(3, '0').slice(0, 3)}`);
    await rows
      .filter({ has: page.getByRole('cell', { name: String(past.lastSize), exact: true }) })
      .first()
      .waitFor();
    await filter.fill('');
    await pointAway();
    const newest = () => rows.nth(1).textContent();
    const first = await newest();
    await service.call('POST', '/rest/execution/order/market', { securityId: 1, side: 'BUY', quantity: 1 });
    await until('no trade follows', async () => (await newest()) !== first);
    assert.match(await newest(), /\d\d:\d\d:\d\d\.\d{3}\s*\d+\.\d\d\s*\d+/);
    await filter.fill('sell');
    await rows.filter({ hasText: '▼ sell' }).first().waitFor();
    await rows.filter({ hasText: '▲ buy' }).first().waitFor({ state: 'detached' });
    await filter.fill('');
    await tab(page, 'Orders');
  });

  test('the depth is also shown as sums', async () => {
    const { page } = shared;
    await choose('AAPL');
    await page.getByRole('radio', { name: 'Sums', exact: true }).check({ force: true });
    const plot = page.getByRole('img', { name: /^Sums of the depth: \d[^,]* bid down to [\d.]+, \d.* offered up to/ });
    await plot.waitFor();
    const value = page.getByTestId('depth-value');
    // The plot may still move while its texts arrive, so the pointer follows it.
    const sumAt = async (place) => {
      const box = await plot.boundingBox();
      await page.mouse.move(box.x + place(box.width) + 1, box.y + box.height / 2);
      await page.mouse.move(box.x + place(box.width), box.y + box.height / 2);
      const [text] = await value.allTextContents();
      return text && number(text.split(':')[1]);
    };
    let left;
    await until('no sum is shown at the pointer', async () => (left = await sumAt(() => 5)) !== undefined);
    await until('the sum does not fall towards the best price', async () => {
      return (await sumAt((width) => width / 2 - 12)) < left;
    });
    await page.getByRole('radio', { name: 'Levels', exact: true }).check({ force: true });
    await page.getByRole('list', { name: 'Bids' }).waitFor();
    await pointAway();
  });

  test('strategies have their P&L, kind and parameters', async () => {
    const setting =
      'strategy=[{name="PAIRS",kind="moving-average-cross",securities=["AAPL"],start=false,parameters={fast=3,slow=9}}]';
    const own = await new Service([setting]).start();
    const other = await open(shared.chrome, own.url, { width: 1920 });
    await tab(other, 'Strategies');
    const row = (name) => other.getByRole('region', { name: 'Strategies' }).getByRole('row').filter({ hasText: name });
    await row('PAIRS').getByText('moving-average-cross').waitFor();
    await row('PAIRS').getByText('fast 3, slow 9').waitFor();
    const strategyName = 'MOMENTUM';
    const order = { securityId: 1, side: 'BUY', quantity: 100, strategyName };
    await own.call('POST', '/rest/execution/order/market', order);
    await row(strategyName)
      .getByRole('cell', { name: /^[+−][\d.]+$/ })
      .first()
      .waitFor();
    assert.deepEqual(other.errors, []);
    await other.context().close();
    await own.remove();
  });
}
