// Indicators of the chart, computed from bars. Each function returns one value for each bar, and
// undefined where there are too few bars before it. They are only drawn, so floating-point numbers
// suffice.

import type { Bar } from './candles';

export type Values = (number | undefined)[];

/** Periods that the user may choose. */
export const PERIOD_MIN = 2;
export const PERIOD_MAX = 200;

export const INDICATORS = { volume: 'Volume', sma: 'SMA', ema: 'EMA', vwap: 'VWAP', rsi: 'RSI' } as const;
export type IndicatorId = keyof typeof INDICATORS;

/** Choices of the user. Volume and VWAP have no period. */
export type Indicators = Record<IndicatorId, { isOn: boolean; period?: number }>;

export const DEFAULT_INDICATORS: Indicators = {
  volume: { isOn: true },
  sma: { isOn: false, period: 20 },
  ema: { isOn: false, period: 50 },
  vwap: { isOn: false },
  rsi: { isOn: false, period: 14 },
};

/** Returns saved choices with defaults for what is missing or impossible. */
export function indicatorsFrom(saved: Partial<Record<string, unknown>> | undefined): Indicators {
  const ids = Object.keys(INDICATORS) as IndicatorId[];
  const entry = (id: IndicatorId): Indicators[IndicatorId] => {
    const { isOn, period } = DEFAULT_INDICATORS[id];
    const own = (saved?.[id] ?? {}) as { isOn?: unknown; period?: unknown };
    return {
      isOn: typeof own.isOn === 'boolean' ? own.isOn : isOn,
      ...(period === undefined ? {} : { period: periodOf(String(own.period ?? ''), period) }),
    };
  };
  return Object.fromEntries(ids.map((id) => [id, entry(id)])) as Indicators;
}

/** Returns a period within the permitted range; `otherwise` if the text is not a whole number. */
export function periodOf(text: string, otherwise: number): number {
  const period = Number(text.trim() || NaN);
  return Number.isInteger(period) ? Math.min(PERIOD_MAX, Math.max(PERIOD_MIN, period)) : otherwise;
}

/** Returns the mean of the last `period` values. */
export function simpleAverage(values: readonly number[], period: number): Values {
  let sum = 0;
  return values.map((value, at) => {
    sum += value - (at >= period ? values[at - period]! : 0);
    return at >= period - 1 ? sum / period : undefined;
  });
}

/**
 * Returns the exponential average with the weight 2 / (period + 1). It starts with the mean of the
 * first `period` values.
 */
export function exponentialAverage(values: readonly number[], period: number): Values {
  const weight = 2 / (period + 1);
  let average = 0;
  return values.map((value, at) => {
    average = at < period ? average + value / period : average + (value - average) * weight;
    return at >= period - 1 ? average : undefined;
  });
}

/**
 * Returns the average price weighted by volume since the start of the trading day. `dayOf` returns
 * the same value for all times of a day. The price of a bar is the mean of high, low and close.
 */
export function volumeWeightedPrice(bars: readonly Bar[], dayOf: (time: number) => string | number): Values {
  let [day, worth, volume]: [string | number | undefined, number, number] = [undefined, 0, 0];
  return bars.map((bar) => {
    const today = dayOf(bar.time);
    if (today !== day) [day, worth, volume] = [today, 0, 0];
    worth += ((bar.high + bar.low + bar.close) / 3) * bar.volume;
    volume += bar.volume;
    return volume > 0 ? worth / volume : undefined;
  });
}

/**
 * Returns the relative strength index of Wilder, 0 to 100. Gains and losses start with their mean over
 * the first `period` changes and are then smoothed with the weight 1 / period.
 */
export function relativeStrength(values: readonly number[], period: number): Values {
  let [gain, loss] = [0, 0];
  return values.map((value, at) => {
    if (at === 0) return undefined;
    const change = value - values[at - 1]!;
    const [up, down] = [Math.max(change, 0), Math.max(-change, 0)];
    if (at <= period) {
      gain += up / period;
      loss += down / period;
      if (at < period) return undefined;
    } else {
      gain += (up - gain) / period;
      loss += (down - loss) / period;
    }
    // Without any change there is no strength in either direction.
    return gain + loss === 0 ? 50 : (100 * gain) / (gain + loss);
  });
}

/** Length of the shortest interval between two possible midnights of time zones, in seconds. */
const QUARTER_S = 900;

/** Returns a function that names the day of a time in a time zone. */
export function dayIn(timeZone: string | undefined): (time: number) => string {
  const format = formatOf(timeZone);
  const known = new Map<number, string>();
  return (time) => {
    const quarter = Math.floor(time / QUARTER_S);
    let day = known.get(quarter);
    if (day === undefined) known.set(quarter, (day = dayOf(format, quarter * QUARTER_S * 1000)));
    return day;
  };
}

/** Returns a date such as 2026-11-18. No locale writes dates alike in all versions of a browser. */
function dayOf(format: Intl.DateTimeFormat, time: number): string {
  const parts = format.formatToParts(time);
  const part = (type: string): string => parts.find((known) => known.type === type)?.value ?? '';
  return `${part('year')}-${part('month')}-${part('day')}`;
}

function formatOf(timeZone: string | undefined): Intl.DateTimeFormat {
  const fields = { year: 'numeric', month: '2-digit', day: '2-digit' } as const;
  try {
    return new Intl.DateTimeFormat('en', { ...fields, timeZone });
  } catch {
    // The browser does not know the time zone.
    return new Intl.DateTimeFormat('en', { ...fields, timeZone: 'UTC' });
  }
}
