import { describe, expect, it } from 'vitest';

import { readEntry } from './entry';

describe('a number that a person wrote', () => {
  const cases: [string, string | null, string | null][] = [
    // Text, its number with a decimal point, its number with a decimal comma.
    ['1000', '1000', '1000'],
    ['1,000', '1000', '1'],
    ['1 000', '1000', '1000'],
    ['1\u202f000.50', '1000.5', '1000.5'],
    ["1'000'000", '1000000', '1000000'],
    ['1,000,000', '1000000', '1000000'],
    ['1.000.000', '1000000', '1000000'],
    ['1,234.5', '1234.5', '1234.5'],
    ['1.234,5', '1234.5', '1234.5'],
    ['1.5', '1.5', '1.5'],
    // Alone, a point is the decimal sign of the page.
    ['1.000', '1', '1'],
    ['1,5', null, '1.5'],
    ['0,25', null, '0.25'],
    ['1e3', '1000', '1000'],
    ['1.5E2', '150', '150'],
    ['2e-2', '0.02', '0.02'],
    ['123e-9', null, null],
    ['1e99', null, null],
    ['-5', '-5', '-5'],
    ['−5', '-5', '-5'],
    ['+.50', '0.5', '0.5'],
    ['', null, null],
    ['.', null, null],
    ['abc', null, null],
    ['1 00', null, null],
    ['1,00,000', null, null],
    ['1.2,3.4', null, null],
    ['12 34', null, null],
    ['1,000.', '1000', '1000'],
    ['0.123456789', null, null],
  ];
  it.each(cases)('%j is read by the language of the browser', (text, point, comma) => {
    expect([readEntry(text, '.'), readEntry(text, ',')]).toEqual([point, comma]);
  });
});
