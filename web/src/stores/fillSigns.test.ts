import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';

import type { Transaction } from '../model/types';
import { COLLECT_MS, FillSigns } from './fillSigns';

const fill = (type: Transaction['type'], securityId: number, strategyName = 'SERVER'): Transaction =>
  ({ id: 1, type, securityId, quantity: '1000', price: '232.5', currency: 'USD', strategyName }) as Transaction;

describe('signs of fills', () => {
  let given: string[];
  let wants: { sound: boolean; note: boolean; strategy: string };
  let signs: FillSigns;
  beforeEach(() => {
    vi.useFakeTimers();
    given = [];
    wants = { sound: true, note: true, strategy: '' };
    signs = new FillSigns(
      () => wants,
      (id) => `S${id}`,
      { play: (side) => given.push(side), note: (title, text) => given.push(`${title}: ${text}`) },
    );
  });
  afterEach(() => void vi.useRealTimers());

  it('name the order', () => {
    signs.handle(fill('BUY', 1));
    vi.advanceTimersByTime(COLLECT_MS);
    expect(given).toEqual(['BUY', 'Filled: BUY 1\u202f000 S1: at 232.5 USD, SERVER']);
  });

  it('are one for fills that arrive together', () => {
    for (let id = 1; id <= 7; id++) signs.handle(fill('SELL', id));
    vi.advanceTimersByTime(COLLECT_MS);
    expect(given).toEqual(['SELL', '7 fills: S1, S2, S3, S4, S5, …']);
    vi.advanceTimersByTime(COLLECT_MS);
    expect(given).toHaveLength(2);
  });

  it('are not given for other transactions and strategies, nor if they are off', () => {
    signs.handle(fill('FEES', 1));
    wants.strategy = 'PAIRS';
    signs.handle(fill('BUY', 1));
    wants = { sound: false, note: false, strategy: '' };
    signs.handle(fill('BUY', 1));
    vi.advanceTimersByTime(COLLECT_MS);
    expect(given).toEqual([]);
  });
});
