import { describe, expect, it } from 'vitest';

import {
  creditText,
  currencyFault,
  draftOf,
  isCreditUnknown,
  limitChanges,
  limitFault,
  limitText,
  riskRows,
  useText,
  useTone,
} from './risk';
import type { LimitUse, Limits } from './types';

const LIMITS: Limits = {
  strategyName: 'PAIRS',
  tradingEnabled: true,
  maxOrderQty: '100',
  maxOrderValue: '0',
  priceCollarPct: '12.5',
  maxOpenOrders: 10,
  maxPosition: '1000.5',
  maxOrdersPerS: 0,
  duplicateWindowMs: 0,
};
const { strategyName: _, ...REST } = LIMITS;
const USE: LimitUse = {
  strategyName: 'PAIRS',
  openOrders: 8,
  refusals: [
    { reason: 'price-collar', detail: 'far', count: 2, dateTime: '2026-11-17T10:00:02Z', securityId: 1 },
    { reason: 'order-rate', detail: 'fast', count: 3, dateTime: '2026-11-17T10:00:01Z', securityId: 2 },
  ],
};

describe('limits and their use', () => {
  it('joins each strategy and account with its use', () => {
    const risk = { killSwitch: false, limits: [LIMITS, { ...REST, accountName: 'PAIRS' }], restrictions: [] };
    const [strategy, account] = riskRows(risk, [USE]);
    expect([strategy?.kind, strategy?.name, strategy?.refused]).toEqual(['Strategy', 'PAIRS', 5]);
    expect(strategy?.newest?.reason).toBe('price-collar');
    expect([account?.kind, account?.use, account?.refused]).toEqual(['Account', undefined, 0]);
    expect(riskRows(null, [])).toEqual([]);
  });

  it('names the shards that did not tell the credit in use', () => {
    const limits = { ...REST, accountName: 'NEWYORK', credit: '100000', creditCurrency: 'USD' };
    const risk = { killSwitch: false, limits: [limits, LIMITS], restrictions: [] };
    const use = { accountName: 'NEWYORK', openOrders: 0, refusals: [] };
    const texts = (more: object): (string | boolean)[] => {
      const [account, strategy] = riskRows(risk, [{ ...use, ...more }]);
      return [creditText(account!), isCreditUnknown(account!), creditText(strategy!)];
    };
    expect(texts({ credit: '25.59427272' })).toEqual(['25.59 of 100\u202f000 USD', false, '']);
    const unknown = '? of 100\u202f000 USD: no answer from shard 1, 3';
    expect(texts({ unansweredShards: [1, 3] })).toEqual([unknown, true, '']);
    expect(texts({})).toEqual(['of 100\u202f000 USD', false, '']);
  });

  it('shows use and limit in words and tones', () => {
    expect(limitText('0')).toBe('no limit');
    expect(limitText('12.5', ' %')).toBe('12.5 %');
    expect(useText('8', '10')).toBe('8 of 10');
    expect(useText('8', '0')).toBe('8');
    expect(useText(undefined, '10')).toBe('of 10');
    expect([useTone('7.99', '10'), useTone('8', '10'), useTone('10', '10')]).toEqual([undefined, 'warn', 'down']);
    expect([useTone('8', '0'), useTone(undefined, '10')]).toEqual([undefined, undefined]);
  });

  it('sends the limits that differ, exactly', () => {
    const draft = draftOf(LIMITS);
    expect(limitChanges(LIMITS, draft)).toBeNull();
    expect(limitChanges(LIMITS, { ...draft, maxPosition: '1000.50' })).toBeNull();
    expect(limitChanges(LIMITS, { ...draft, maxPosition: '0.00000001', maxOpenOrders: '20' })).toEqual({
      strategyName: 'PAIRS',
      maxPosition: '0.00000001',
      maxOpenOrders: 20,
    });
    expect(limitChanges({ ...REST, accountName: 'A' }, { ...draft, tradingEnabled: false })).toEqual({
      accountName: 'A',
      tradingEnabled: false,
    });
    const credited = { ...draft, credit: '5000.5', creditCurrency: 'USD' };
    expect(limitChanges({ ...REST, accountName: 'A' }, credited)).toEqual({
      accountName: 'A',
      credit: '5000.5',
      creditCurrency: 'USD',
    });
    const before = { ...REST, accountName: 'A', credit: '5000.5', creditCurrency: 'USD' };
    expect(limitChanges(before, credited)).toBeNull();
    expect(limitChanges(before, { ...credited, credit: '0' })?.['credit']).toBe('0');
    // Credit is a limit of accounts.
    expect(limitChanges(LIMITS, credited)).toBeNull();
    const currencies = ['', 'USD', 'usd', '1INCH', 'U$'].map((creditCurrency) =>
      currencyFault({ ...credited, creditCurrency }),
    );
    expect(currencies).toEqual([
      'A credit needs its currency',
      '',
      'Write a currency like USD',
      '',
      'Write a currency like USD',
    ]);
    expect(currencyFault({ ...credited, credit: '0', creditCurrency: '' })).toBe('');
  });

  it('says what is wrong with a limit', () => {
    expect(limitFault('10', true)).toBe('');
    expect(limitFault('-1', false)).toBe('Must not be below zero');
    expect(limitFault('1.5', true)).toBe('Must be a whole number');
    expect(limitFault('many', false)).toContain('“many” is not a number');
  });
});
