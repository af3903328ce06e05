// Debian's Chromium, with nothing of the reader's.

import { chromium } from 'playwright-core';

export async function browser() {
  return chromium.launch({
    executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
    args: ['--no-sandbox', '--disable-gpu', '--disable-background-networking', '--disable-dev-shm-usage', '--disable-extensions', '--no-first-run'],
  });
}

/** A page that has prices. What the browser complains about is kept: a policy that is broken, a script that fails. */
export async function open(chrome, url, { width = 1280, height = 800, theme = 'dark', sockets } = {}) {
  const context = await chrome.newContext({ viewport: { width, height }, colorScheme: theme, hasTouch: width < 760, acceptDownloads: true });
  const page = await context.newPage();
  // In place of the service, for what it says over STOMP.
  if (sockets) await page.routeWebSocket(/\/stomp$/, sockets);
  page.setDefaultTimeout(30_000);
  page.complaints = [];
  page.on('pageerror', (error) => page.complaints.push(error.message));
  page.on('console', (message) => {
    // A lost connection is told by the browser too, and is none of the page's faults.
    if (message.type() === 'error' && !/ERR_|WebSocket connection|status of (4|5)\d\d/.test(message.text())) page.complaints.push(message.text());
  });
  await page.goto(url);
  return page;
}

/** A tab of the panels. */
export async function tab(page, name) {
  await page.getByRole('tab', { name: new RegExp(`^${name}`) }).first().click();
}

/** Pressed for as long as the button asks. */
export async function hold(page, button) {
  await button.hover();
  await page.mouse.down();
  await page.waitForTimeout(1_200);
  await page.mouse.up();
}
