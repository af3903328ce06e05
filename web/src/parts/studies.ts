// The indicators that the user has switched on, as the chart draws them.

import { type Bar } from '../model/candles';
import {
  INDICATORS,
  type Indicators,
  type Values,
  exponentialAverage,
  relativeStrength,
  simpleAverage,
  volumeWeightedPrice,
} from '../model/indicators';
import type { Study } from './priceChart';

const closes = (bars: readonly Bar[]): number[] => bars.map((bar) => bar.close);

/** Functions of the closes and a period. */
const OF_CLOSES = { sma: simpleAverage, ema: exponentialAverage, rsi: relativeStrength } as const;
const COLOURS = { sma: '--accent', ema: '--warn', vwap: '--text', rsi: '--accent' } as const;

/** Returns the indicators to draw. `dayOf` names the trading day of a time. */
export function studiesOf(chosen: Indicators, dayOf: (time: number) => string): Study[] {
  const ids = ['sma', 'ema', 'vwap', 'rsi'] as const;
  return ids
    .filter((id) => chosen[id].isOn)
    .map((id) => {
      const { period } = chosen[id];
      return {
        id,
        label: period === undefined ? INDICATORS[id] : `${INDICATORS[id]} ${period}`,
        colour: COLOURS[id],
        isApart: id === 'rsi',
        values: (bars): Values =>
          id === 'vwap' ? volumeWeightedPrice(bars, dayOf) : OF_CLOSES[id](closes(bars), period ?? 0),
      };
    });
}
