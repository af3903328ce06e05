// Numbers as people write and paste them: `1,000`, `1 000`, `1e3`, `1.5`, and `1,5` where the
// language of the browser writes a decimal comma.
//
// A point is always a decimal sign if it stands alone, because the page itself writes it so. A
// comma that stands alone separates thousands or decimals, as the language says. So a doubtful text
// gives the smaller of two numbers, never one that is a thousand times too large.

import { type Decimal, decimal, units } from './decimal';

/** Decimal sign of the language of the browser. */
export const DECIMAL_SIGN: string =
  new Intl.NumberFormat().formatToParts(1.5).find(({ type }) => type === 'decimal')?.value ?? '.';

const PLACES = 8;
/** More digits than any quantity or price has. */
const EXPONENT_MAX = 20;
/** Separators that are never decimal signs: spaces, underscores and apostrophes. */
const GROUPS_ONLY = /(?<=\d)[\s\u00a0\u2009\u202f_'’](?=\d{3}(?!\d))/g;
const SHAPE = /^([+\-−]?)([\d.,]+)(?:e([+-]?\d{1,2}))?$/i;

/** Returns the number of a text that a person wrote; null if it is none, or is ambiguous. */
export function readEntry(text: string, sign = DECIMAL_SIGN): Decimal | null {
  const parts = SHAPE.exec(text.trim().replaceAll(GROUPS_ONLY, ''));
  if (!parts) return null;
  const [, minus = '', digits = '', exponent = '0'] = parts;
  const plain = plainDigits(digits, sign);
  if (plain === null) return null;
  const shifted = shift(plain, Number(exponent));
  const exact = shifted === null ? null : units(shifted);
  return exact === null ? null : decimal(minus === '-' || minus === '−' ? -exact : exact);
}

/** Returns digits with at most one point, as the decimal sign. */
function plainDigits(digits: string, sign: string): string | null {
  const marks = digits.replaceAll(/\d/g, '');
  if (marks === '' || marks === '.') return digits;
  if (new Set(marks).size === 2) {
    // The last mark is the decimal sign, and the other one separates thousands.
    const last = marks.at(-1)!;
    if (marks.indexOf(last) !== marks.length - 1) return null;
    const [whole = '', part = ''] = digits.split(last);
    const joined = joinGroups(whole, last === '.' ? ',' : '.');
    return joined === null ? null : `${joined}.${part}`;
  }
  if (marks === ',' && sign === ',') return digits.replace(',', '.');
  return joinGroups(digits, marks[0]!);
}

/** Removes separators of thousands, which stand before groups of three digits. */
function joinGroups(digits: string, mark: string): string | null {
  const [first = '', ...groups] = digits.split(mark);
  const isGrouped = /^\d{1,3}$/.test(first) && groups.every((group) => /^\d{3}$/.test(group));
  return isGrouped || groups.length === 0 ? digits.replaceAll(mark, '') : null;
}

/** Moves the decimal point. */
function shift(digits: string, by: number): string | null {
  if (by === 0) return digits;
  if (Math.abs(by) > EXPONENT_MAX) return null;
  const [whole = '', part = ''] = digits.split('.');
  if (by > 0) {
    const padded = part.padEnd(by, '0');
    return `${whole}${padded.slice(0, by)}.${padded.slice(by)}`;
  }
  const padded = whole.padStart(-by + 1, '0');
  const moved = `${padded.slice(0, by)}.${padded.slice(by)}${part}`;
  return moved.replace(/0+$/, '').length - moved.indexOf('.') - 1 > PLACES ? null : moved;
}
