// What the reader has chosen, saved in this browser.

import type { BarLength } from '../model/candles';
import type { OrderType, Side, Tif } from '../model/types';

const KEY = 'pitlane.settings';
/** Between a change and its writing: sliders move often. */
const WRITE_MS = 200;

export interface TableSettings {
  hidden?: string[];
  sort?: { key: string; down: boolean } | null;
  group?: string;
}

interface SavedSettings {
  theme: 'dark' | 'light' | 'system';
  /** All strategies when empty. */
  strategy: string;
  securityId: number | null;
  docks: [string, string];
  tables: Record<string, TableSettings>;
  barLength: BarLength;
  hotKeys: boolean;
  /** Asks once more before an order goes. */
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

  /** Call after a change; an effect of the page does. */
  write(text: string): void {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => {
      try {
        localStorage.setItem(KEY, text);
      } catch {
        // A browser without room or permission: the choice lasts as long as the page.
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

/** What was kept, with today's first values for what is new; nonsense is dropped. */
function load(): SavedSettings {
  try {
    const saved = JSON.parse(localStorage.getItem(KEY) ?? '{}') as Partial<SavedSettings>;
    return { ...structuredClone(DEFAULTS), ...saved, ticket: { ...DEFAULTS.ticket, ...saved.ticket } };
  } catch {
    return structuredClone(DEFAULTS);
  }
}
