import { beforeEach, afterEach, describe, expect, it, vi } from 'vitest';

import { Problem, Rest, isRefusal } from '../link/rest';
import { ConfirmStore } from './confirm.svelte';
import { BAD_MAX, NoticeStore } from './notices.svelte';

/** Returns the problem of a call with this response. */
async function problemOf(respond: typeof fetch): Promise<Problem> {
  return new Rest('', respond).post('/rest/execution/order/market').then(
    () => expect.unreachable('the call succeeds'),
    (problem: Problem) => problem,
  );
}

describe('a failed call', () => {
  it('is a refusal only if the service has answered', async () => {
    const refused = await problemOf(
      async () => new Response('{"code":"bad-lot","detail":"the quantity is not a multiple"}', { status: 422 }),
    );
    expect([isRefusal(refused), refused.message]).toEqual([true, 'the quantity is not a multiple']);
    expect(isRefusal(await problemOf(async () => new Response('', { status: 431 })))).toBe(true);
    const failures: (typeof fetch)[] = [
      async () => Promise.reject(new TypeError('net::ERR_INSUFFICIENT_RESOURCES')),
      async () => Promise.reject(new DOMException('', 'TimeoutError')),
      async () => new Response('<html>Bad Gateway</html>', { status: 502 }),
      async () => new Response('{}', { status: 503 }),
      async () => new Response('{"code":"no-answer","detail":"no result within 10 s"}', { status: 503 }),
    ];
    for (const failure of failures) expect(isRefusal(await problemOf(failure))).toBe(false);
    expect(isRefusal(new Error('a fault of the page'))).toBe(false);
  });

  it('says that a time was exceeded', async () => {
    const late = await problemOf(async () => Promise.reject(new DOMException('', 'TimeoutError')));
    expect(late.message).toBe('The service did not respond within 15 s');
  });
});

describe('notices', () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());

  it('of failures stay until they are dismissed', () => {
    const notices = new NoticeStore();
    notices.done('Cancel BUY 5 AAPL: sent');
    notices.failed('BUY 5 AAPL', new Problem(422, 'bad-lot', 'not a multiple'));
    notices.failed('BUY 6 AAPL', Problem.unreachable());
    vi.advanceTimersByTime(3_600_000);
    expect(notices.good).toEqual([]);
    expect(notices.bad.map(({ title }) => title)).toEqual([
      'BUY 6 AAPL: no response',
      'BUY 5 AAPL: refused by the service',
    ]);
    expect(notices.bad[0]?.text).toContain('may have taken effect');
    notices.dismiss(notices.bad[0]!.id);
    expect(notices.bad).toHaveLength(1);
    notices.dismissAll();
    expect(notices.bad).toEqual([]);
  });

  it('are bounded, and those dropped are counted', () => {
    const notices = new NoticeStore();
    for (let n = 0; n < BAD_MAX + 3; n++) notices.warn(`failure ${n}`, '');
    expect([notices.bad.length, notices.dropped, notices.bad[0]?.title]).toEqual([
      BAD_MAX,
      3,
      `failure ${BAD_MAX + 2}`,
    ]);
    notices.dismissAll();
    expect(notices.dropped).toBe(0);
  });
});

describe('a question', () => {
  it('has one answer, and a newer question answers it with no', async () => {
    const confirm = new ConfirmStore();
    const first = confirm.ask({ title: 'Close AAPL?', text: '', action: 'Close' });
    const second = confirm.ask({ title: 'Close MSFT?', text: '', action: 'Close' });
    expect(await first).toBe(false);
    expect(confirm.question?.title).toBe('Close MSFT?');
    confirm.reply(true);
    expect(await second).toBe(true);
    expect(confirm.question).toBeNull();
  });
});
