import { describe, expect, it } from 'vitest';

import { Silence } from './silence';

/** Checks every half second, as the page does, and returns what the last check found. */
function checkedUntil(silence: Silence, from: number, to: number): number {
  let silentMs = NaN;
  for (let now = from; now <= to; now += 500) silentMs = silence.check(now);
  return silentMs;
}

describe('silence of the service', () => {
  it('counts from the last data', () => {
    const silence = new Silence();
    silence.heard(1_000);
    expect(checkedUntil(silence, 1_000, 4_000)).toBe(3_000);
    silence.heard(4_200);
    expect(silence.check(4_500)).toBe(300);
  });

  it('does not count time in which the page itself was blocked', () => {
    const silence = new Silence();
    silence.heard(1_000);
    expect(checkedUntil(silence, 1_000, 1_500)).toBe(500);
    // The timer runs before the data that has waited is read.
    expect(silence.check(13_000)).toBe(0);
    silence.heard(13_001);
    expect(checkedUntil(silence, 13_500, 14_000)).toBe(999);
  });

  it('counts after a block if the service stays silent', () => {
    const silence = new Silence();
    silence.heard(1_000);
    silence.check(1_500);
    silence.check(13_000);
    expect(checkedUntil(silence, 13_500, 23_500)).toBe(10_500);
  });

  it('counts on a hidden page, whose timers run once per second', () => {
    const silence = new Silence();
    silence.heard(0);
    for (let now = 0; now < 12_000; now += 1_000) silence.check(now);
    expect(silence.check(12_000)).toBe(12_000);
  });
});
