import { describe, expect, it } from 'vitest';

import { outline, summed } from './depth';

const levels = [
  { price: '10.1', size: '0.1' },
  { price: '10', size: '0.2' },
  { price: '9.5', size: '3' },
];

describe('sums of levels', () => {
  it('are exact', () => {
    expect(summed(levels).map(({ sum }) => sum)).toEqual(['0.1', '0.3', '3.3']);
    expect(summed([])).toEqual([]);
  });

  it('are drawn as steps that end at the base', () => {
    const path = outline(
      summed(levels),
      (price) => Number(price) * 10,
      (sum) => 100 - Number(sum) * 10,
      90,
    );
    expect(path).toBe('M101,100H101V99H100V97H95V67H90V100Z');
    expect(outline([], Number, Number, 0)).toBe('');
  });
});
