import { describe, expect, it } from 'vitest';

import {
  add,
  compare,
  decimal,
  formatDecimal,
  formatSigned,
  gainTone,
  isMultiple,
  multiply,
  places,
  stepBy,
  units,
} from './decimal';

describe('decimals', () => {
  it('keep every digit that a double would lose', () => {
    const text = '90071992.54740993';
    expect(decimal(units(text)!)).toBe(text);
    expect(String(Number('92233720368.54775807'))).not.toBe('92233720368.54775807');
    expect(decimal(units('92233720368.54775807')!)).toBe('92233720368.54775807');
    expect(add('0.1', '0.2')).toBe('0.3');
  });

  it('reject invalid text', () => {
    for (const text of ['', '.', '-', '1e5', '1,5', 'x', '0.123456789', undefined]) expect(units(text)).toBeNull();
    expect(units('0.1234567800')).toBe(12345678n);
    expect(units('.5')).toBe(50000000n);
    expect(units('-.5')).toBe(-50000000n);
  });

  it('step exactly', () => {
    expect(isMultiple(units('232.35')!, '0.05')).toBe(true);
    expect(isMultiple(units('232.36')!, '0.05')).toBe(false);
    expect(places('0.25')).toBe(2);
    expect(places('1')).toBe(0);
    expect(decimal(stepBy(units('232.36')!, '0.05', 1n))).toBe('232.4');
    expect(decimal(stepBy(units('232.36')!, '0.05', -1n))).toBe('232.35');
    expect(decimal(stepBy(units('232.35')!, '0.05', -1n))).toBe('232.3');
    expect(decimal(multiply(units('232.5')!, units('3')!))).toBe('697.5');
  });

  it('are ordered by value, not by text', () => {
    expect(compare('9', '10')).toBe(-1);
    expect(compare('-2', '-10')).toBe(1);
    expect(compare('1.50', '1.5')).toBe(0);
    expect(compare(undefined, '1')).toBe(-1);
  });

  it('are formatted for display', () => {
    expect(formatDecimal('1234567.5', 2)).toBe('1\u202f234\u202f567.50');
    expect(formatDecimal('-0.004', 2, 2)).toBe('0.00');
    expect(formatDecimal('-0.005', 2, 2)).toBe('−0.01');
    expect(formatDecimal('1.23456', 2, 4)).toBe('1.2346');
    expect(formatDecimal(undefined)).toBe('');
    expect([
      formatDecimal('-0'),
      formatDecimal('-0.00', 2),
      formatDecimal('-0.5'),
      formatDecimal('1.500'),
      formatDecimal('-1234.5', 2),
      formatDecimal('007.0'),
      formatDecimal('12x'),
    ]).toEqual(['0', '0.00', '−0.5', '1.5', '−1\u202f234.50', '7', '']);
    expect(formatSigned('5', 2)).toBe('+5.00');
    expect(formatSigned('0')).toBe('0');
    // What is displayed as zero has no sign and no tone.
    expect([formatSigned('0.004', 2, 2), formatSigned('-0.004', 2, 2)]).toEqual(['0.00', '0.00']);
    const tones = ['0.004', '-0.004', '0.005', '-0.005', '0', undefined].map((amount) => gainTone(amount, 2));
    expect(tones).toEqual([undefined, undefined, 'up', 'down', undefined, undefined]);
  });
});
