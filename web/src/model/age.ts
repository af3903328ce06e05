// The age of a price. A price that has not changed for a while may be valid, but a trader must see
// that it is old.

/** Above this age a price is grey. */
export const OLD_MS = 10_000;
/** Above this age a price also has a sign. */
export const STALE_MS = 60_000;

export type Freshness = 'fresh' | 'old' | 'stale';

export function freshness(ageMs: number | undefined): Freshness {
  if (ageMs === undefined || ageMs < OLD_MS) return 'fresh';
  return ageMs < STALE_MS ? 'old' : 'stale';
}

/** Formats the age of an old price: `12 s`, and with its sign `! 3 min`. A fresh price has none. */
export function ageText(ageMs: number | undefined): string {
  if (ageMs === undefined || freshness(ageMs) === 'fresh') return '';
  const s = Math.floor(ageMs / 1000);
  if (s < 60) return `${s} s`;
  if (s < 3_600) return `! ${Math.floor(s / 60)} min`;
  return s < 86_400 ? `! ${Math.floor(s / 3_600)} h` : `! ${Math.floor(s / 86_400)} d`;
}
