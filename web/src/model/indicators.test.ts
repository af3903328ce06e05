import { describe, expect, it } from 'vitest';

import {
  DEFAULT_INDICATORS,
  PERIOD_MAX,
  PERIOD_MIN,
  type Values,
  dayIn,
  exponentialAverage,
  indicatorsFrom,
  periodOf,
  relativeStrength,
  simpleAverage,
  volumeWeightedPrice,
} from './indicators';

const rounded = (values: Values): Values => values.map((value) => value && Math.round(value * 100) / 100);
const known = (values: Values): Values => rounded(values).filter((value) => value !== undefined);

// The examples of the ChartSchool of StockCharts, with their published results.
const CLOSES = [
  22.27, 22.19, 22.08, 22.17, 22.18, 22.13, 22.23, 22.43, 22.24, 22.29, 22.15, 22.39, 22.38, 22.61, 23.36,
];
const STRENGTH_CLOSES = [
  44.3389, 44.0902, 44.1497, 43.6124, 44.3278, 44.8264, 45.0955, 45.4245, 45.8433, 46.0826, 45.8931, 46.0328, 45.614,
  46.282, 46.282, 46.0028, 46.0328, 46.4116, 46.2222, 45.6439,
];

describe('averages', () => {
  it('begin when there are enough values', () => {
    expect(simpleAverage([1, 2, 3, 4], 3)).toEqual([undefined, undefined, 2, 3]);
    expect(exponentialAverage([1, 2], 3)).toEqual([undefined, undefined]);
    expect(simpleAverage([], 3)).toEqual([]);
  });

  it('have the published values', () => {
    expect(known(simpleAverage(CLOSES, 10))).toEqual([22.22, 22.21, 22.23, 22.26, 22.3, 22.42]);
    expect(known(exponentialAverage(CLOSES, 10))).toEqual([22.22, 22.21, 22.24, 22.27, 22.33, 22.52]);
  });
});

describe('the relative strength index', () => {
  it('has the published values', () => {
    expect(relativeStrength(STRENGTH_CLOSES, 14).indexOf(undefined, 14)).toBe(-1);
    expect(known(relativeStrength(STRENGTH_CLOSES, 14))).toEqual([70.53, 66.32, 66.55, 69.41, 66.36, 57.97]);
  });

  it('is 100, 0 or 50 if prices only rise, only fall or stand still', () => {
    expect(relativeStrength([1, 2, 3], 2).at(-1)).toBe(100);
    expect(relativeStrength([3, 2, 1], 2).at(-1)).toBe(0);
    expect(relativeStrength([2, 2, 2], 2).at(-1)).toBe(50);
  });
});

describe('the price weighted by volume', () => {
  const bar = (time: number, close: number, volume: number) => ({
    time,
    open: close,
    high: close + 2,
    low: close - 2,
    close,
    volume,
  });

  it('starts again each day, and needs a trade', () => {
    const bars = [bar(1, 10, 0), bar(2, 10, 3), bar(3, 20, 1), bar(4, 30, 5)];
    const days = volumeWeightedPrice(bars, (time) => (time < 4 ? 'a' : 'b'));
    expect(days).toEqual([undefined, 10, 12.5, 30]);
  });

  it('uses the mean of high, low and close', () => {
    expect(volumeWeightedPrice([{ ...bar(1, 10, 1), high: 14, low: 9 }], () => '')).toEqual([11]);
  });
});

describe('days of a time zone', () => {
  const at = (text: string): number => Date.parse(text) / 1000;

  it('begin at its midnight', () => {
    const dayOf = dayIn('America/New_York');
    expect(dayOf(at('2026-11-17T04:59:59Z'))).toBe('2026-11-16');
    expect(dayOf(at('2026-11-17T05:00:00Z'))).toBe('2026-11-17');
    // Midnight at a quarter of an hour of UTC.
    expect(dayIn('Asia/Kathmandu')(at('2026-11-16T18:15:00Z'))).toBe('2026-11-17');
  });

  it('are those of UTC if the time zone is unknown', () => {
    expect(dayIn('Nowhere/Else')(at('2026-11-17T00:00:00Z'))).toBe('2026-11-17');
  });
});

describe('choices of indicators', () => {
  it('have defaults for what is missing or impossible', () => {
    expect(indicatorsFrom(undefined)).toEqual(DEFAULT_INDICATORS);
    expect(indicatorsFrom({ sma: { isOn: 'yes', period: 'x' }, rsi: null, other: 1 })).toEqual(DEFAULT_INDICATORS);
    expect(indicatorsFrom({ sma: { isOn: true, period: 9 } }).sma).toEqual({ isOn: true, period: 9 });
  });

  it('have periods within the permitted range', () => {
    expect([' 9 ', '0', '1e9', '2.5', '', 'x'].map((text) => periodOf(text, 7))).toEqual([
      9,
      PERIOD_MIN,
      PERIOD_MAX,
      7,
      7,
      7,
    ]);
  });
});
