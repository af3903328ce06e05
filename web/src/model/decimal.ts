// Exact decimals. The service computes in units of 10⁻⁸. Here a decimal is its text, and arithmetic
// uses integer units. JavaScript numbers are used for drawing only.

/** A decimal as in the message: `232.5`, `-0.00000001`. */
export type Decimal = string;

const PLACES = 8;
const SCALE = 100_000_000n;
const SHAPE = /^([+-]?)(\d*)(?:\.(\d*))?$/;

/** Returns units of 10⁻⁸; null if the text is not a decimal or has too many places. */
export function units(text: Decimal | undefined): bigint | null {
  const parts = text === undefined ? null : SHAPE.exec(text.trim());
  if (!parts) return null;
  const [, sign, whole = '', part = ''] = parts;
  const places = part.replace(/0+$/, '');
  if (whole + part === '' || places.length > PLACES) return null;
  const size = BigInt(whole || '0') * SCALE + BigInt(places.padEnd(PLACES, '0'));
  return sign === '-' ? -size : size;
}

/** Returns the shortest text of a number of units. */
export function decimal(amount: bigint): Decimal {
  const size = amount < 0n ? -amount : amount;
  const part = (size % SCALE).toString().padStart(PLACES, '0').replace(/0+$/, '');
  const text = (size / SCALE).toString() + (part && `.${part}`);
  return amount < 0n ? `-${text}` : text;
}

/** Returns the decimal places of a step such as a tick: `0.25` has two. */
export function places(step: Decimal): number {
  const text = decimal(units(step) ?? 0n);
  const point = text.indexOf('.');
  return point < 0 ? 0 : text.length - point - 1;
}

/** Returns whether an amount is a multiple of a step. */
export function isMultiple(amount: bigint, step: Decimal): boolean {
  const size = units(step) ?? 0n;
  return size <= 0n || amount % size === 0n;
}

/**
 * Returns the multiple of a step `by` steps away. From between two multiples, the first step goes
 * to the nearest multiple in that direction.
 */
export function stepBy(amount: bigint, step: Decimal, by: bigint): bigint {
  const size = units(step) ?? 0n;
  if (size <= 0n) return amount;
  const rest = ((amount % size) + size) % size;
  if (rest === 0n) return amount + by * size;
  return by > 0n ? amount - rest + by * size : amount - rest + (by + 1n) * size;
}

/** Multiplies two amounts in units; rounds towards zero. */
export function multiply(a: bigint, b: bigint): bigint {
  return (a * b) / SCALE;
}

export function compare(a: Decimal | undefined, b: Decimal | undefined): number {
  const [left, right] = [units(a), units(b)];
  if (left === null || right === null) return Number(left !== null) - Number(right !== null);
  return left < right ? -1 : left > right ? 1 : 0;
}

export function add(...amounts: (Decimal | undefined)[]): Decimal {
  return decimal(amounts.reduce((sum, amount) => sum + (units(amount) ?? 0n), 0n));
}

export function negate(amount: Decimal): Decimal {
  return decimal(-(units(amount) ?? 0n));
}

export function isNegative(amount: Decimal | undefined): boolean {
  return (units(amount) ?? 0n) < 0n;
}

export function isZero(amount: Decimal | undefined): boolean {
  return (units(amount) ?? 0n) === 0n;
}

/**
 * Formats a decimal for display: with separated thousands, a minus sign, and at least `least` and
 * at most `most` places. Rounds half away from zero.
 */
export function formatDecimal(amount: Decimal | undefined, least = 0, most = PLACES): string {
  if (amount === undefined) return '';
  const plain = PLAIN.exec(amount);
  if (plain && (plain[3]?.length ?? 0) <= Math.max(least, most))
    return joinDigits(plain[1] ? '−' : '', plain[2]!, plain[3] ?? '', least);
  const exact = units(amount);
  if (exact === null) return '';
  const cut = 10n ** BigInt(PLACES - Math.max(least, most));
  const size = exact < 0n ? -exact : exact;
  const rounded = ((size + cut / 2n) / cut) * cut;
  const sign = exact < 0n && rounded > 0n ? '−' : '';
  return joinDigits(sign, (rounded / SCALE).toString(), (rounded % SCALE).toString().padStart(PLACES, '0'), least);
}

/** A decimal as the service writes it, except a negative zero. Its digits need no arithmetic. */
const PLAIN = /^(-(?!0(?:\.0*)?$))?(0|[1-9]\d*)(?:\.(\d+))?$/;

function joinDigits(sign: string, whole: string, digits: string, least: number): string {
  const part = (digits.endsWith('0') ? digits.replace(/0+$/, '') : digits).padEnd(least, '0');
  const parted = whole.length > 3 ? whole.replace(/\B(?=(\d{3})+$)/g, '\u202f') : whole;
  return part === '' ? sign + parted : `${sign}${parted}.${part}`;
}

/** Formats a decimal for display, with a plus sign if it is above zero as displayed. */
export function formatSigned(amount: Decimal | undefined, least = 0, most = PLACES): string {
  const text = formatDecimal(amount, least, most);
  return toneOf(text) === 'up' ? `+${text}` : text;
}

/** Returns the tone of a gain or loss that is displayed with at most so many places. */
export const gainTone = (amount: Decimal | undefined, most = PLACES): 'up' | 'down' | undefined =>
  toneOf(formatDecimal(amount, 0, most));

function toneOf(text: string): 'up' | 'down' | undefined {
  if (!/[1-9]/.test(text)) return undefined;
  return text.startsWith('−') ? 'down' : 'up';
}
