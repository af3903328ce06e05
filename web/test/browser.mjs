// Debian's Chromium, without a user profile. Ubuntu has no such package; there it is the Chromium
// that Playwright has installed (`config/setup`).

import { existsSync } from 'node:fs';
import { join } from 'node:path';

import { chromium } from 'playwright-core';

const DEBIAN = '/usr/bin/chromium';

/** Folder of a newly built page, which replaces the one in the binary: `PAGE=dist/page`. */
const { PAGE } = process.env;

/** Path of the browser. */
export const CHROMIUM = process.env.CHROMIUM ?? (existsSync(DEBIAN) ? DEBIAN : chromium.executablePath());

export async function browser() {
  return chromium.launch({
    executablePath: CHROMIUM,
    args: [
      '--no-sandbox',
      '--disable-gpu',
      '--disable-background-networking',
      '--disable-dev-shm-usage',
      '--disable-extensions',
      '--no-first-run',
      // A page from a folder counts as foreign to the service on this machine.
      ...(PAGE ? ['--disable-features=LocalNetworkAccessChecks'] : []),
    ],
  });
}

/** Opens a page. `errors` collects violations of the policy and failed scripts. */
export async function open(chrome, url, { width = 1280, height = 800, theme = 'dark', locale, sockets, script } = {}) {
  const context = await chrome.newContext({
    viewport: { width, height },
    colorScheme: theme,
    ...(locale && { locale }),
    hasTouch: width < 760,
    acceptDownloads: true,
  });
  if (PAGE) await context.route(/:\d+\/(assets\/.*|favicon\.svg)?$/, servePage);
  const page = await context.newPage();
  // Runs before the scripts of the page.
  if (script) await page.addInitScript(script);
  // Replaces the service for STOMP.
  if (sockets) await page.routeWebSocket(/\/stomp$/, sockets);
  page.setDefaultTimeout(30_000);
  page.errors = [];
  page.on('pageerror', (error) => page.errors.push(error.message));
  page.on('console', (message) => {
    // The browser also logs a lost connection, which is not an error of the page.
    if (message.type() === 'error' && !/ERR_|WebSocket connection|status of (4|5)\d\d/.test(message.text()))
      page.errors.push(message.text());
  });
  await page.goto(url);
  return page;
}

/** Responds with a file of the page, and with the headers of the service. */
async function servePage(route) {
  const { pathname } = new URL(route.request().url());
  const path = join(PAGE, pathname === '/' ? 'index.html' : pathname);
  if (pathname === '/') await route.fulfill({ response: await route.fetch(), path, contentType: 'text/html' });
  else await route.fulfill({ path });
}

/** Connects a page to the service without live prices, so that every bar is one of the past. */
export function withoutTicks(socket) {
  const server = socket.connectToServer();
  server.onMessage((message) => String(message).includes('"type":"TICK"') || socket.send(message));
}

/** The tabs of the panels. */
export const PANELS = [
  'Orders',
  'Positions',
  'Transactions',
  'Trades',
  'P&L',
  'Risk',
  'Cash',
  'Log',
  'Latency',
  'Sessions',
  'Strategies',
  'Topics',
  'Settings',
  'API',
];

/** Opens a tab of the panels. */
export async function tab(page, name) {
  await page
    .getByRole('tab', { name: new RegExp(`^${name}`) })
    .first()
    .click();
}

/** Clicks an action of a row. Rows stand still under the pointer, and are armed a moment later. */
export async function act(button) {
  await button.hover();
  await button.and(button.page().locator(':not([aria-disabled=true])')).waitFor();
  await button.click();
}

/** Holds a button for as long as it requires. */
export async function hold(page, button) {
  await button.hover();
  await page.mouse.down();
  await page.waitForTimeout(1_200);
  await page.mouse.up();
}
