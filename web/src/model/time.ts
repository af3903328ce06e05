// Times. The service uses UTC with nanoseconds; comparisons use nanoseconds, and the page shows the
// time zone of the browser.

import type { Instant } from './types';

/** Returns nanoseconds since the epoch; null if the text is not a time. */
export function nanoseconds(instant: Instant): bigint | null {
  const parts = /^(.*?)(?:\.(\d{1,9}))?Z$/.exec(instant);
  const ms = parts ? Date.parse(`${parts[1]}Z`) : NaN;
  return Number.isNaN(ms) ? null : BigInt(ms) * 1_000_000n + BigInt((parts?.[2] ?? '').padEnd(9, '0'));
}

/** Formats nanoseconds since the epoch like the service. */
export function instantOf(ns: bigint): Instant {
  const second = new Date(Number(ns / 1_000_000_000n) * 1000).toISOString().slice(0, 19);
  return `${second}.${(ns % 1_000_000_000n).toString().padStart(9, '0')}Z`;
}

const CLOCK = new Intl.DateTimeFormat(undefined, {
  hour: '2-digit',
  minute: '2-digit',
  second: '2-digit',
  hourCycle: 'h23',
});
const DAY = new Intl.DateTimeFormat(undefined, { year: 'numeric', month: '2-digit', day: '2-digit' });

/** Formats a time as `14:03:59.123` in the time zone of the browser. */
export function clock(instant: Instant | number | undefined): string {
  const ms = typeof instant === 'number' ? instant : Date.parse(instant ?? '');
  if (Number.isNaN(ms)) return '';
  return `${CLOCK.format(ms)}.${String(Math.floor(ms) % 1000).padStart(3, '0')}`;
}

/** Formats date and time, for times that may be older than today. */
export function full(instant: Instant | undefined): string {
  const ms = Date.parse(instant ?? '');
  return Number.isNaN(ms) ? '' : `${DAY.format(ms)} ${clock(ms)}`;
}

/** Formats a duration as `2 h 05 min` or `12 s`. */
export function lasted(ms: number): string {
  const s = Math.max(0, Math.floor(ms / 1000));
  if (s < 60) return `${s} s`;
  if (s < 3600) return `${Math.floor(s / 60)} min ${String(s % 60).padStart(2, '0')} s`;
  const [days, hours] = [Math.floor(s / 86_400), Math.floor(s / 3600) % 24];
  return days ? `${days} d ${hours} h` : `${hours} h ${String(Math.floor(s / 60) % 60).padStart(2, '0')} min`;
}

/** Formats a latency with three digits: `1.25 µs`. */
export function latency(ns: number): string {
  const [value, unit] =
    ns < 1000 ? [ns, 'ns'] : ns < 1e6 ? [ns / 1e3, 'µs'] : ns < 1e9 ? [ns / 1e6, 'ms'] : [ns / 1e9, 's'];
  return `${unit === 'ns' ? value : value.toPrecision(3)} ${unit}`;
}

/** The time zone of the browser, for headings. */
export const ZONE = Intl.DateTimeFormat().resolvedOptions().timeZone;
