// Settings of the page, saved in this browser.

import { DEFAULT_LAYOUT, type Layout, layoutFrom } from '../model/layout';
import type { BarLength } from '../model/candles';
import { DEFAULT_INDICATORS, type Indicators, indicatorsFrom } from '../model/indicators';
import type { OrderType, Side, Tif } from '../model/types';

const KEY = 'pitlane.settings';
/** Delay between a change and its write, because sliders change often. */
const WRITE_MS = 200;

export interface TableSettings {
  hidden?: string[];
  sort?: { key: string; down: boolean } | null;
  group?: string;
}

interface SavedSettings {
  theme: 'dark' | 'light' | 'system';
  /** Empty: all strategies. */
  strategy: string;
  securityId: number | null;
  docks: [string, string];
  tables: Record<string, TableSettings>;
  barLength: BarLength;
  indicators: Indicators;
  /** Whether the depth is a list of levels or a plot of their sums. */
  depthView: 'levels' | 'sums';
  hotKeys: boolean;
  /** Whether the page asks for confirmation before it sends an order. */
  confirm: boolean;
  /** Share of a limit, in percent, from which the page asks before it sends an order. */
  largeShare: number;
  /**
   * Whether the page asks before it closes a position, before a key cancels or closes, and before
   * it moves an order to the price to which its line was dragged.
   */
  ask: boolean;
  ticket: { type: OrderType; side: Side; tif: Tif; quantity: string; strategyName: string };
  finished: boolean;
  /** Signs of fills. */
  sound: boolean;
  desktopNotes: boolean;
  layout: Layout;
  /** Layouts that the user saved, by name. */
  layouts: Record<string, SavedLayout>;
  /** Securities by the name of the watch list. */
  watchLists: Record<string, number[]>;
  /** Watch list that is shown; empty: all securities. */
  watchList: string;
}

/** A layout with the panels and tables that belong to it. */
export interface SavedLayout {
  layout: Layout;
  docks: [string, string];
  tables: Record<string, TableSettings>;
}

const DEFAULTS: SavedSettings = {
  theme: 'system',
  strategy: '',
  securityId: null,
  docks: ['orders', 'positions'],
  tables: {},
  barLength: '1s',
  indicators: DEFAULT_INDICATORS,
  depthView: 'levels',
  hotKeys: true,
  confirm: false,
  largeShare: 50,
  ask: true,
  ticket: { type: 'LIMIT', side: 'BUY', tif: 'DAY', quantity: '', strategyName: 'SERVER' },
  finished: true,
  sound: false,
  desktopNotes: false,
  layout: DEFAULT_LAYOUT,
  layouts: {},
  watchLists: {},
  watchList: '',
};

export class SettingsStore {
  saved: SavedSettings = $state(load());
  private timer: ReturnType<typeof setTimeout> | undefined;

  /** Saves the settings. An effect of the page calls it after a change. */
  write(text: string): void {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => {
      try {
        localStorage.setItem(KEY, text);
      } catch {
        // Without storage, the settings last as long as the page.
      }
    }, WRITE_MS);
  }

  table(id: string): TableSettings {
    return this.saved.tables[id] ?? {};
  }

  setTable(id: string, part: TableSettings): void {
    this.saved.tables[id] = { ...this.table(id), ...part };
  }

  /** Saves the layout, the panels and the tables under a name. */
  saveLayout(name: string): void {
    const { layout, docks, tables } = $state.snapshot(this.saved);
    this.saved.layouts[name] = { layout, docks, tables };
  }

  /** Restores a saved layout; without a name, the default. */
  restoreLayout(name?: string): void {
    const found = name === undefined ? undefined : $state.snapshot(this.saved.layouts[name]);
    this.saved.layout = layoutFrom(found?.layout);
    this.saved.docks = found?.docks ?? [...DEFAULTS.docks];
    this.saved.tables = found?.tables ?? {};
  }

  removeLayout(name: string): void {
    delete this.saved.layouts[name];
  }

  /** Adds a security to a watch list, or removes it. An unknown list is created. */
  toggleWatched(list: string, securityId: number): void {
    const ids = this.saved.watchLists[list] ?? [];
    this.saved.watchLists[list] = ids.includes(securityId)
      ? ids.filter((id) => id !== securityId)
      : [...ids, securityId];
  }

  removeWatchList(list: string): void {
    delete this.saved.watchLists[list];
    if (this.saved.watchList === list) this.saved.watchList = '';
  }

  get isDark(): boolean {
    if (this.saved.theme !== 'system') return this.saved.theme === 'dark';
    return typeof matchMedia === 'undefined' || !matchMedia('(prefers-color-scheme: light)').matches;
  }
}

/** Loads the saved settings, with defaults for new ones. Discards invalid data. */
function load(): SavedSettings {
  try {
    const saved = JSON.parse(localStorage.getItem(KEY) ?? '{}') as Partial<SavedSettings>;
    return {
      ...structuredClone(DEFAULTS),
      ...saved,
      ticket: { ...DEFAULTS.ticket, ...saved.ticket },
      indicators: indicatorsFrom(saved.indicators),
      layout: layoutFrom(saved.layout),
    };
  } catch {
    return structuredClone(DEFAULTS);
  }
}
