// Sums of price levels from the best price on.

import { type Decimal, add } from './decimal';
import type { Level } from './types';

/** A level with the size of all levels up to it. */
export interface SummedLevel extends Level {
  sum: Decimal;
}

/** Returns the levels, best first, with their sums. */
export function summed(levels: readonly Level[]): SummedLevel[] {
  let sum: Decimal = '0';
  return levels.map((level) => ({ ...level, sum: (sum = add(sum, level.size)) }));
}

/**
 * Returns the outline of sums as an SVG path: a step at each price, which lasts until the next one,
 * closed at the base. `x` and `y` return the position of a price and of a sum; the last step ends at
 * `end`.
 */
export function outline(
  levels: readonly SummedLevel[],
  x: (price: Decimal) => number,
  y: (sum: Decimal) => number,
  end: number,
): string {
  const [first] = levels;
  if (!first) return '';
  const steps = levels.map((level) => `H${x(level.price)}V${y(level.sum)}`);
  return `M${x(first.price)},${y('0')}${steps.join('')}H${end}V${y('0')}Z`;
}
