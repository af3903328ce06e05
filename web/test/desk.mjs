// End-to-end tests of what a trading desk relies on: truthful prices, rows that stand still, clear
// words about failures, and the life of an order. They use the browser, the service and the page of
// the other journeys.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { act, open, tab } from './browser.mjs';

/** Registers the tests. `shared` has the page, the browser, the service, and actions on the page. */
export function deskJourneys(shared) {
  const { choose, write, untilOpen, openOrders, pointAway, orderRows } = shared;
  const limitOrder = (securityId, quantity, limit) =>
    shared.service.call('POST', '/rest/execution/order/limit', { securityId, side: 'BUY', quantity, limit });
  const marketOrder = (securityId, side, quantity) =>
    shared.service.call('POST', '/rest/execution/order/market', { securityId, side, quantity });
  const notices = () => shared.page.getByRole('log', { name: 'Notices' });

  test('the lamp turns amber when no heart-beat arrives', async () => {
    let isMuted = false;
    const sockets = (socket) => {
      const server = socket.connectToServer();
      socket.onMessage((frame) => server.send(frame));
      server.onMessage((frame) => isMuted || socket.send(frame));
    };
    const other = await open(shared.chrome, shared.service.url, { sockets });
    const lamp = other.getByTestId('lamp');
    await lamp.filter({ hasText: 'Connected' }).waitFor();
    isMuted = true;
    await lamp.filter({ hasText: /No heart-beat for \d s/ }).waitFor();
    assert.match(await lamp.getAttribute('class'), /warn/);
    isMuted = false;
    await lamp.filter({ hasText: 'Connected' }).waitFor();
    assert.match(await lamp.getAttribute('class'), /up/);
    await other.context().close();
  });

  test('an old price is grey first, and has a sign later', async () => {
    const other = await open(shared.chrome, shared.service.url);
    const price = other.getByRole('region', { name: 'Market data' }).getByRole('row').nth(1).locator('.cell-text');
    await price.filter({ hasText: /\d/ }).first().waitFor();
    // The service sends prices of now. Its clock runs ahead here, so that they are old.
    let aheadMs = 30_000;
    await other.route(/\/(rest|health)\//, async (route) => {
      const response = await route.fetch();
      const date = new Date(Date.now() + aheadMs).toUTCString();
      await route.fulfill({ response, headers: { ...response.headers(), date } });
    });
    await price.filter({ hasText: /^(29|3\d) s$/ }).waitFor();
    await other
      .locator('tbody .cell-text.dim')
      .filter({ hasText: /^\d+\.\d\d$/ })
      .first()
      .waitFor();
    aheadMs = 200_000;
    const signed = price.filter({ hasText: '! 3 min' });
    await signed.waitFor();
    assert.match(await signed.getAttribute('class'), /warn/);
    await other.getByRole('region', { name: 'Order', exact: true }).getByText('! 3 min').waitFor();
    // A position is valued at such a price.
    await marketOrder(2, 'BUY', 5);
    await tab(other, 'Positions');
    const position = other.getByRole('region', { name: 'Positions' }).getByRole('row').filter({ hasText: 'MSFT' });
    await position.locator('.cell-text.warn', { hasText: '! 3 min' }).waitFor();
    await marketOrder(2, 'SELL', 5);
    await other.context().close();
  });

  test('order form and depth show the same best prices in every frame', async () => {
    await choose('AAPL');
    await shared.page.getByRole('list', { name: 'Bids' }).getByRole('listitem').nth(2).waitFor();
    const { frames, differing, changes } = await shared.page.evaluate(async () => {
      const text = (selector) => document.querySelector(selector)?.textContent.trim();
      const seen = new Set();
      const result = { frames: 0, differing: [], changes: 0 };
      for (const end = performance.now() + 2_000; performance.now() < end; result.frames++) {
        await new Promise(requestAnimationFrame);
        const form = [...document.querySelectorAll('.ticket .quote strong')].map((node) => node.textContent.trim());
        const depth = [text('[aria-label=Bids] li:first-child .price'), text('[aria-label=Asks] li:last-child .price')];
        seen.add(form.join());
        if (form.join() !== depth.join()) result.differing.push([form, depth]);
      }
      result.changes = seen.size;
      return result;
    });
    assert.ok(frames > 10, `${frames} frames`);
    assert.ok(changes > 1, 'the prices change');
    assert.deepEqual(differing, []);
  });

  test('the page listens to the securities in sight, and to no others', async () => {
    const frames = [];
    const script = () => {
      const { send } = WebSocket.prototype;
      WebSocket.prototype.send = function (data) {
        (window.framesSent ??= []).push(String(data));
        return send.call(this, data);
      };
    };
    const other = await open(shared.chrome, shared.service.url, { width: 1280, height: 500, script });
    const sent = async () => {
      frames.push(...(await other.evaluate(() => window.framesSent.splice(0))));
      const topic = (frame) => /destination:\/topic\/(tick\.\S+)/.exec(frame)?.[1];
      return frames
        .filter((frame) => frame.startsWith('SUBSCRIBE'))
        .map(topic)
        .filter(Boolean);
    };
    await other.waitForFunction(() => /\d/.test(document.querySelector('tbody tr td:nth-child(2)')?.textContent ?? ''));
    const first = await sent();
    assert.ok(first.includes('tick.1') && first.includes('tick.2'), first.join());
    assert.ok(!first.includes('tick.52') && !first.includes('tick.*'), first.join());
    await other.getByRole('region', { name: 'Market data' }).evaluate((node) => (node.scrollTop = node.scrollHeight));
    await other.waitForFunction(() => window.framesSent.some((frame) => frame.includes('/topic/tick.52')));
    assert.ok((await sent()).includes('tick.52'));
    assert.ok(frames.some((frame) => frame.startsWith('UNSUBSCRIBE')));
    await other.context().close();
  });

  test('rows stand still under the pointer, and actions wait until they do', async () => {
    const { page } = shared;
    await tab(page, 'Orders');
    await pointAway();
    const count = await openOrders();
    const { intId } = await shared.service.call('POST', '/rest/execution/order/limit?return=order', {
      securityId: 1,
      side: 'BUY',
      quantity: 33,
      limit: 92,
    });
    await untilOpen(count + 1);
    const cancel = page.getByRole('button', { name: `Cancel ${intId}`, exact: true });
    await cancel.hover();
    const place = await cancel.boundingBox();
    for (let n = 0; n < 3; n++) await limitOrder(1, 30 + n, 91);
    await page.getByRole('button', { name: '3 new' }).waitFor();
    assert.deepEqual(await cancel.boundingBox(), place);
    await page.getByRole('button', { name: '3 new' }).click();
    // The row has just moved, so a click now would be one on another row.
    await page.locator(`[aria-label="Cancel ${intId}"][aria-disabled=true]`).waitFor();
    assert.notEqual((await cancel.boundingBox()).y, place.y);
    await page.locator(`[aria-label="Cancel ${intId}"][aria-disabled=false]`).waitFor();
    await act(cancel);
    await untilOpen(count + 3);
    // The cancelled order is below, apart from the open ones.
    await pointAway();
    await page.getByRole('region', { name: 'Orders' }).locator('tr.group', { hasText: 'Finished today' }).waitFor();
  });

  test('an edit in a row says in words what is wrong', async () => {
    const { page } = shared;
    await pointAway();
    await act(orderRows().filter({ hasText: 'New' }).first().getByRole('button', { name: /^Edit/ }));
    await page.getByLabel('New quantity').fill('1.5');
    await page.getByText('✕ Quantity: Must be a multiple of 1').waitFor();
    await page.getByLabel('New limit').fill('ninety');
    await page.getByText('✕ Limit: “ninety” is not a number. Write it like 1234.5').waitFor();
    assert.equal(await page.getByRole('button', { name: 'Save', exact: true }).isDisabled(), true);
    // No row moves while the editor is open, wherever the pointer is.
    await pointAway();
    const place = await page.getByLabel('New limit').boundingBox();
    const count = await openOrders();
    await limitOrder(1, 5, 90);
    await page.getByRole('button', { name: '1 new' }).waitFor();
    assert.deepEqual(await page.getByLabel('New limit').boundingBox(), place);
    await page.getByLabel('New limit').press('Escape');
    await untilOpen(count + 1);
    await page.getByLabel('New limit').waitFor({ state: 'detached' });
  });

  test('a click opens the history of an order, and a key asks before it cancels', async () => {
    const { page } = shared;
    await pointAway();
    const count = await openOrders();
    await orderRows().filter({ hasText: 'New' }).first().getByRole('cell').first().click();
    const history = page.getByRole('region', { name: /^History of order/ });
    await history.getByText('Sent').waitFor();
    await history.getByText(/REST, 127\.0\.0\.1/).waitFor();
    await page.keyboard.press('c');
    const question = page.getByRole('dialog', { name: /^Cancel BUY/ });
    await question.getByRole('button', { name: 'Back' }).click();
    await question.waitFor({ state: 'detached' });
    assert.equal(await openOrders(), count);
    await page.keyboard.press('c');
    await question.getByRole('button', { name: 'Cancel the order' }).click();
    await untilOpen(count - 1);
    await history.getByText('Canceled', { exact: true }).last().waitFor();
    await history.getByRole('button', { name: 'Close the history' }).click();
    // The user does not want to be asked.
    const asks = async (isAsked) => {
      await page.getByRole('button', { name: 'Keys and settings' }).click();
      await page.getByLabel('Ask before closing a position').setChecked(isAsked);
      await page.keyboard.press('Escape');
    };
    await asks(false);
    await pointAway();
    await orderRows().filter({ hasText: 'New' }).first().getByRole('cell').first().click();
    await page.keyboard.press('c');
    await untilOpen(count - 2);
    assert.equal(await question.count(), 0);
    await asks(true);
    await history.getByRole('button', { name: 'Close the history' }).click();
  });

  test('the history of an order has what happened before the page was opened', async () => {
    const { service } = shared;
    const count = await openOrders();
    const sent = { securityId: 1, side: 'BUY', quantity: 41, limit: 90.5, intId: 'before-the-page' };
    await service.call('POST', '/rest/execution/order/limit', sent);
    await service.call('POST', '/rest/execution/modify/order/limit', { intId: sent.intId, limit: 91.25 });
    const other = await open(shared.chrome, service.url);
    await tab(other, 'Orders');
    const rows = other.getByRole('region', { name: 'Orders' }).getByRole('row');
    await rows.filter({ hasText: '91.25' }).first().getByRole('cell').first().click();
    const history = other.getByRole('region', { name: /^History of order/ });
    for (const terms of ['New 41 limit 90.50', 'New 41 limit 91.25']) {
      await history.getByRole('listitem').filter({ hasText: terms }).waitFor();
    }
    assert.equal(await history.getByText('Changes that the service no longer has').count(), 0);
    await other.context().close();
    await service.call('DELETE', `/rest/execution/order/${sent.intId}`);
    await untilOpen(count);
  });

  test('the button that cancels all orders tells how many, also those that a filter hides', async () => {
    const { page } = shared;
    await pointAway();
    const count = await openOrders();
    assert.ok(count > 0);
    const button = (what) => page.getByRole('button', { name: new RegExp(`^Cancel all ${what} ?, hold`) });
    await button(count).waitFor();
    const filter = page.getByLabel('Filter orders');
    await filter.fill('no order has this');
    await button(`${count}, also hidden ones`).waitFor();
    await filter.press('Escape');
    await page.getByLabel('Side of orders').selectOption('SELL');
    await button(0).waitFor();
    assert.equal(await button(0).isDisabled(), true);
    await page.getByLabel('Side of orders').selectOption('');
  });

  test('a failure of the network is not told as an answer, and stays until it is read', async () => {
    const { page } = shared;
    await choose('AAPL');
    await page.route('**/rest/execution/order/limit', (route) => route.abort());
    await write({ type: 'Limit', quantity: 7, limit: 100 });
    await page.getByTestId('send').click();
    await notices().getByText('BUY 7 AAPL: no response').waitFor();
    await notices().getByText('It may have taken effect', { exact: false }).waitFor();
    await page.unroute('**/rest/execution/order/limit');
    // The service gets another quantity, and refuses it.
    await page.route('**/rest/execution/order/limit', async (route) => {
      const body = JSON.stringify({ ...JSON.parse(route.request().postData()), quantity: 0.5 });
      await route.continue({ postData: body });
    });
    await page.getByTestId('send').click();
    await notices().getByText('BUY 7 AAPL: refused by the service').waitFor();
    await page.unroute('**/rest/execution/order/limit');
    assert.equal(await notices().getByText('BUY 7 AAPL: no response').count(), 1);
    await notices().getByRole('button', { name: 'Dismiss all' }).click();
    assert.equal(await notices().getByText('BUY 7 AAPL', { exact: false }).count(), 0);
  });

  test('an order that the venue turns down has a message that stays, and is not called sent', async () => {
    const { page } = shared;
    await choose('AAPL');
    await write({ type: 'Limit', quantity: 3, limit: 100 });
    const inForce = page.getByRole('region', { name: 'Order', exact: true }).getByLabel('In force');
    await inForce.selectOption('FOK');
    await page.getByTestId('send').click();
    await notices().getByText('BUY 3 AAPL: cancelled, 0 filled').waitFor();
    await notices().getByText('Its reason: fok.').waitFor();
    assert.equal(await notices().getByText('BUY 3 AAPL: sent').count(), 0);
    await notices().getByRole('button', { name: 'Dismiss: BUY 3 AAPL: cancelled, 0 filled' }).click();
    await inForce.selectOption('DAY');
  });

  test('numbers are read as people write them', async () => {
    const { page } = shared;
    for (const [text, number] of [
      ['1,000', '1\u202f000'],
      ['1 000', '1\u202f000'],
      ['2e3', '2\u202f000'],
    ]) {
      await write({ type: 'Limit', quantity: text, limit: 100 });
      assert.match(await page.getByTestId('send').textContent(), new RegExp(`Buy ${number} AAPL at 100.00`));
    }
  });

  test('Escape clears a search, and watch lists choose securities', async () => {
    const { page } = shared;
    const rows = page.getByRole('region', { name: 'Market data' }).getByRole('row');
    const search = page.getByLabel('Search securities');
    await search.fill('msft');
    await rows.filter({ hasText: 'AAPL' }).first().waitFor({ state: 'detached' });
    await search.press('Escape');
    assert.equal(await search.inputValue(), '');
    await rows.filter({ hasText: 'AAPL' }).first().waitFor();
    await choose('NVDA');
    await page.getByTitle('Watch lists').click();
    await page.getByLabel('Name of the watch list').fill('chips');
    await page.getByRole('button', { name: 'Add', exact: true }).click();
    await rows.filter({ hasText: 'AAPL' }).first().waitFor({ state: 'detached' });
    assert.equal(await rows.count(), 2);
    await page.getByRole('button', { name: 'Remove the watch list chips' }).click();
    await rows.filter({ hasText: 'AAPL' }).first().waitFor();
    await page.keyboard.press('Escape');
  });

  test('positions have totals, and fills have notes and sounds if the user wants them', async () => {
    const script = () => {
      window.notes = [];
      window.tones = 0;
      const { createOscillator } = AudioContext.prototype;
      AudioContext.prototype.createOscillator = function () {
        window.tones += 1;
        return createOscillator.call(this);
      };
      const Real = Notification;
      window.Notification = class extends Real {
        constructor(title, options) {
          super(title, options);
          window.notes.push(title);
        }
      };
    };
    const other = await open(shared.chrome, shared.service.url, { script });
    await other.context().grantPermissions(['notifications']);
    await tab(other, 'Positions');
    await marketOrder(2, 'BUY', 5);
    const totals = other.getByLabel('Totals of the positions');
    await totals.getByText('1 position').waitFor();
    await totals.getByText('USD').waitFor();
    assert.deepEqual(await other.evaluate(() => [window.notes, window.tones]), [[], 0]);
    await other.getByRole('button', { name: 'Keys and settings' }).click();
    await other.getByLabel('Show desktop notes on fills').check();
    await other.getByLabel('Play a sound on fills').check();
    await other.keyboard.press('Escape');
    await marketOrder(2, 'SELL', 5);
    await other.waitForFunction(() => window.notes.length > 0 && window.tones > 0);
    assert.match((await other.evaluate(() => window.notes))[0], /^(Filled: SELL|\d+ fills)/);
    await other.context().close();
  });

  test('parts are resized, moved, and kept after a reload', async () => {
    const other = await open(shared.chrome, shared.service.url);
    const market = other.getByRole('region', { name: 'Market', exact: true });
    const width = async () => (await market.boundingBox()).width;
    const before = await width();
    const bar = other.getByRole('separator', { name: 'Width of the top left area' });
    await bar.focus();
    for (let n = 0; n < 5; n++) await bar.press('ArrowRight');
    assert.ok((await width()) > before + 50);
    await other.getByRole('button', { name: 'Layout' }).click();
    await other.getByRole('combobox', { name: 'Top left' }).selectOption('Panels');
    await other.waitForFunction(() => localStorage.getItem('pitlane.settings')?.includes('"dock":"market"'));
    await other.reload();
    await market.waitFor();
    assert.ok((await market.boundingBox()).y > 300, 'the market is at the bottom');
    await other.getByRole('button', { name: 'Layout' }).click();
    await other.getByLabel('Name of the layout').fill('market below');
    await other.getByRole('button', { name: 'Save', exact: true }).click();
    await other.getByRole('button', { name: 'Restore the default' }).click();
    assert.ok((await market.boundingBox()).y < 100, 'the market is at the top');
    await other.getByRole('button', { name: 'market below', exact: true }).click();
    assert.ok((await market.boundingBox()).y > 300, 'the saved layout has it at the bottom');
    await other.getByRole('button', { name: 'Restore the default' }).click();
    assert.ok((await market.boundingBox()).y < 100, 'the market is at the top');
    assert.ok(Math.abs((await width()) - before) < 2);
    await other.context().close();
  });

  test('order lines outside the visible prices are counted at the edge of the chart', async () => {
    await choose('AAPL');
    await shared.page.getByText(/▼ \d order prices? below/).waitFor();
  });
}
