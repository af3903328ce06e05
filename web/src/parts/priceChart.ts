// The candle chart by TradingView's Lightweight Charts: candles, volume, indicators, marks and
// lines. It draws what it is given, and only when that has changed.
//
//   pane 0   candles, volume below them, averages, lines of orders, marks of fills
//   pane 1   the relative strength index, if it is shown

import type {
  IChartApi,
  IPriceLine,
  ISeriesApi,
  ISeriesMarkersPluginApi,
  SeriesMarker,
  Time,
  UTCTimestamp,
} from 'lightweight-charts';

import type { Bar } from '../model/candles';
import type { Values } from '../model/indicators';

/** An indicator to draw. */
export interface Study {
  id: string;
  label: string;
  /** Name of the CSS variable. */
  colour: string;
  /** Whether it has a pane of its own, with levels at 30 and 70. */
  isApart: boolean;
  values: (bars: readonly Bar[]) => Values;
}

/** A mark below or above a bar. */
export interface Mark {
  time: number;
  isBelow: boolean;
  text: string;
}

/** A horizontal line. */
export interface Level {
  key: string;
  price: number;
  isUp: boolean;
  isDotted: boolean;
}

export interface View {
  bars: readonly Bar[];
  studies: readonly Study[];
  hasVolume: boolean;
  hasTimes: boolean;
}

/** What the chart reports. */
export interface ChartEvents {
  /** The chart was drawn: positions may have changed. */
  drawn: () => void;
  /** The bar at the cross-hair, by its start; null: none. */
  pointed: (time: number | null) => void;
}

type Library = typeof import('lightweight-charts');

/** Share of the height that volume takes, and that a pane of its own takes of the candles'. */
const VOLUME_SHARE = 0.18;
const APART_SHARE = 0.28;

const colour = (name: string): string => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

/** Creates a chart. The library is as large as the rest of the page, so it loads here. */
export async function loadPriceChart(host: HTMLElement, events: ChartEvents): Promise<PriceChart> {
  return new PriceChart(await import('lightweight-charts'), host, events);
}

export class PriceChart {
  private readonly chart: IChartApi;
  private readonly candles: ISeriesApi<'Candlestick'>;
  private readonly marks: ISeriesMarkersPluginApi<Time>;
  private readonly colours = {
    up: colour('--up'),
    down: colour('--down'),
    upVolume: colour('--up-bg'),
    downVolume: colour('--down-bg'),
    line: colour('--line'),
  };
  private volume: ISeriesApi<'Histogram'> | null = null;
  private lines: { study: Study; series: ISeriesApi<'Line'> }[] = [];
  private levels: { level: Level; line: IPriceLine; isShown: boolean }[] = [];
  private view: View = { bars: [], studies: [], hasVolume: false, hasTimes: true };
  private newest: Bar | undefined;
  /** Prices that the scale includes beside those of the bars. */
  private included: readonly number[] = [];
  /**
   * Seconds from UTC to the time zone of the browser, because the library draws UTC. One value for
   * all bars, so that their times increase when the clocks change.
   */
  private shift = 0;
  private isRemoved = false;

  constructor(
    private readonly library: Library,
    host: HTMLElement,
    private readonly events: ChartEvents,
  ) {
    const { CandlestickSeries, CrosshairMode, createChart, createSeriesMarkers } = library;
    const { line, up, down } = this.colours;
    this.chart = createChart(host, {
      autoSize: true,
      layout: {
        background: { color: colour('--panel') },
        textColor: colour('--dim'),
        fontSize: 11,
        // The logo needs an inline style, which the policy forbids. A link below the chart replaces
        // it.
        attributionLogo: false,
        panes: { separatorColor: line, separatorHoverColor: colour('--hover') },
      },
      grid: { vertLines: { color: line }, horzLines: { color: line } },
      rightPriceScale: { borderColor: line },
      timeScale: { borderColor: line, timeVisible: true, secondsVisible: true, rightOffset: 4 },
      crosshair: { mode: CrosshairMode.Normal },
    });
    this.candles = this.chart.addSeries(CandlestickSeries, {
      upColor: up,
      downColor: down,
      wickUpColor: up,
      wickDownColor: down,
      borderVisible: false,
      autoscaleInfoProvider: (original: () => { priceRange: { minValue: number; maxValue: number } | null } | null) =>
        this.scale(original()),
    });
    this.marks = createSeriesMarkers(this.candles, []);
    this.candles.attachPrimitive({ updateAllViews: () => this.drawn() });
    this.chart.subscribeCrosshairMove(({ time }) =>
      this.events.pointed(typeof time === 'number' ? time - this.shift : null),
    );
  }

  remove(): void {
    this.isRemoved = true;
    this.chart.remove();
  }

  setDigits(digits: number): void {
    const priceFormat = { type: 'price' as const, precision: digits, minMove: 10 ** -digits };
    this.candles.applyOptions({ priceFormat });
    for (const { study, series } of this.lines) if (!study.isApart) series.applyOptions({ priceFormat });
  }

  /** Draws other bars, or the same with other indicators. */
  show(view: View): void {
    this.view = view;
    const { bars, hasVolume, hasTimes } = view;
    this.newest = bars.at(-1) && { ...bars.at(-1)! };
    this.shift = -new Date((this.newest?.time ?? 0) * 1000).getTimezoneOffset() * 60;
    this.chart.applyOptions({
      timeScale: { timeVisible: hasTimes },
      rightPriceScale: { scaleMargins: { top: 0.12, bottom: hasVolume ? VOLUME_SHARE + 0.04 : 0.08 } },
    });
    this.candles.setData(bars.map((bar) => ({ ...bar, time: this.place(bar.time) })));
    this.createVolume(hasVolume);
    this.volume?.setData(bars.map((bar) => this.volumeBar(bar)));
    this.createLines(view.studies);
    for (const { study, series } of this.lines) {
      const values = study.values(bars);
      series.setData(bars.map((bar, at) => this.point(bar.time, values[at])));
    }
  }

  /** Scrolls to the newest bar. */
  scrollToNewest(): void {
    this.chart.timeScale().scrollToRealTime();
  }

  /** Draws the bars that have changed since. Returns whether there were any. */
  follow(): boolean {
    const { bars } = this.view;
    const bar = bars.at(-1);
    const before = this.newest;
    if (!bar || (before && isSame(bar, before))) return false;
    this.newest = { ...bar };
    const first = bars.findIndex((one) => one.time >= (before?.time ?? 0));
    for (const one of bars.slice(first)) {
      this.candles.update({ ...one, time: this.place(one.time) });
      this.volume?.update(this.volumeBar(one));
    }
    for (const { study, series } of this.lines) {
      const values = study.values(bars);
      for (let at = first; at < bars.length; at++) series.update(this.point(bars[at]!.time, values[at]));
    }
    return true;
  }

  setMarks(marks: readonly Mark[]): void {
    const { up, down } = this.colours;
    this.marks.setMarkers(
      marks.map(({ time, isBelow, text }): SeriesMarker<Time> => ({
        time: this.place(time),
        position: isBelow ? 'belowBar' : 'aboveBar',
        shape: isBelow ? 'arrowUp' : 'arrowDown',
        color: isBelow ? up : down,
        text,
      })),
    );
  }

  /** Draws these horizontal lines instead of earlier ones. */
  setLevels(levels: readonly Level[]): void {
    if (this.isRemoved) return;
    for (const { line } of this.levels) this.candles.removePriceLine(line);
    const { up, down } = this.colours;
    this.levels = levels.map((level) => {
      const line = this.candles.createPriceLine({
        price: level.price,
        color: level.isUp ? up : down,
        lineWidth: 1,
        lineStyle: level.isDotted ? 1 : 2,
        lineVisible: false,
        axisLabelVisible: false,
        title: '',
      });
      return { level, line, isShown: false };
    });
    this.drawn();
  }

  /** Moves one horizontal line, while the user drags it. */
  moveLevel(key: string, price: number): void {
    this.levels.find(({ level }) => level.key === key)?.line.applyOptions({ price });
  }

  /** Includes prices in the scale. */
  include(prices: readonly number[]): void {
    this.included = prices;
    this.candles.priceScale().applyOptions({ autoScale: true });
    // The library asks for the range when options of the series change.
    this.candles.applyOptions({});
  }

  /** The lowest and highest visible price; null without bars. */
  range(): { low: number; high: number } | null {
    const [high, low] = [this.candles.coordinateToPrice(0), this.candles.coordinateToPrice(this.height)];
    return high === null || low === null ? null : { low, high };
  }

  /** Distance of a price from the top in pixels. */
  yOf(price: number): number | null {
    return this.candles.priceToCoordinate(price);
  }

  priceAt(y: number): number | null {
    return this.candles.coordinateToPrice(y);
  }

  /** Width of the price axis in pixels. */
  get axisWidth(): number {
    return this.chart.priceScale('right').width();
  }

  /** Moves the cross-hair to a bar. */
  pointTo(bar: Bar | undefined): void {
    if (bar) this.chart.setCrosshairPosition(bar.close, this.place(bar.time), this.candles);
    else this.chart.clearCrosshairPosition();
  }

  private get height(): number {
    return this.chart.paneSize(0).height;
  }

  private place(time: number): UTCTimestamp {
    return (time + this.shift) as UTCTimestamp;
  }

  private point(time: number, value: number | undefined): { time: UTCTimestamp; value?: number } {
    return value === undefined ? { time: this.place(time) } : { time: this.place(time), value };
  }

  private volumeBar({ time, open, close, volume }: Bar): { time: UTCTimestamp; value: number; color: string } {
    const { upVolume, downVolume } = this.colours;
    return { time: this.place(time), value: volume, color: close >= open ? upVolume : downVolume };
  }

  private createVolume(isWanted: boolean): void {
    if (isWanted === (this.volume !== null)) return;
    if (this.volume) {
      this.chart.removeSeries(this.volume);
      this.volume = null;
      return;
    }
    this.volume = this.chart.addSeries(this.library.HistogramSeries, {
      priceScaleId: 'volume',
      priceFormat: { type: 'volume' },
      lastValueVisible: false,
      priceLineVisible: false,
    });
    this.volume.priceScale().applyOptions({ scaleMargins: { top: 1 - VOLUME_SHARE, bottom: 0 } });
    // Volume stands behind the candles.
    this.volume.setSeriesOrder(0);
  }

  private createLines(studies: readonly Study[]): void {
    for (const { series } of this.lines) this.chart.removeSeries(series);
    this.lines = studies.map((study) => {
      const series = this.chart.addSeries(
        this.library.LineSeries,
        {
          color: colour(study.colour),
          lineWidth: 1,
          lastValueVisible: study.isApart,
          priceLineVisible: false,
          crosshairMarkerVisible: false,
          ...(study.isApart ? { priceFormat: { type: 'price' as const, precision: 0, minMove: 1 } } : {}),
        },
        study.isApart ? 1 : 0,
      );
      if (study.isApart) this.createGuides(series);
      return { study, series };
    });
  }

  private createGuides(series: ISeriesApi<'Line'>): void {
    const edge = colour('--edge');
    for (const price of [30, 70]) {
      series.createPriceLine({ price, color: edge, lineWidth: 1, lineStyle: 2, axisLabelVisible: false, title: '' });
    }
    this.chart.panes()[1]?.setStretchFactor(APART_SHARE);
    this.chart.panes()[0]?.setStretchFactor(1);
  }

  private scale<Info extends { priceRange: { minValue: number; maxValue: number } | null } | null>(info: Info): Info {
    const range = info?.priceRange;
    if (!info || !range || this.included.length === 0) return info;
    return {
      ...info,
      priceRange: {
        minValue: Math.min(range.minValue, ...this.included),
        maxValue: Math.max(range.maxValue, ...this.included),
      },
    };
  }

  /** Hides lines outside the visible prices: their labels would pile up at the edge. */
  private drawn(): void {
    if (this.isRemoved) return;
    const range = this.range();
    for (const one of this.levels) {
      const { price } = one.line.options();
      const isShown = range !== null && price <= range.high && price >= range.low;
      if (isShown === one.isShown) continue;
      one.isShown = isShown;
      one.line.applyOptions({ lineVisible: isShown, axisLabelVisible: isShown });
    }
    this.events.drawn();
  }
}

function isSame(a: Bar, b: Bar): boolean {
  return a.time === b.time && a.close === b.close && a.high === b.high && a.low === b.low && a.volume === b.volume;
}
