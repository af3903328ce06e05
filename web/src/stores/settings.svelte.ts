// Settings of the page, saved in this browser.

import type { BarLength } from '../model/candles';
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
  hotKeys: boolean;
  /** Whether the page asks for confirmation before it sends an order. */
  confirm: boolean;
  ticket: { type: OrderType; side: Side; tif: Tif; quantity: string; strategyName: string };
  sizes: Record<string, number>;
  finished: boolean;
}

const DEFAULTS: SavedSettings = {
  theme: 'system',
  strategy: '',
  securityId: null,
  docks: ['orders', 'positions'],
  tables: {},
  barLength: '1s',
  hotKeys: true,
  confirm: false,
  ticket: { type: 'LIMIT', side: 'BUY', tif: 'DAY', quantity: '', strategyName: 'SERVER' },
  sizes: {},
  finished: true,
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

  get isDark(): boolean {
    if (this.saved.theme !== 'system') return this.saved.theme === 'dark';
    return typeof matchMedia === 'undefined' || !matchMedia('(prefers-color-scheme: light)').matches;
  }
}

/** Loads the saved settings, with defaults for new ones. Discards invalid data. */
function load(): SavedSettings {
  try {
    const saved = JSON.parse(localStorage.getItem(KEY) ?? '{}') as Partial<SavedSettings>;
    return { ...structuredClone(DEFAULTS), ...saved, ticket: { ...DEFAULTS.ticket, ...saved.ticket } };
  } catch {
    return structuredClone(DEFAULTS);
  }
}
