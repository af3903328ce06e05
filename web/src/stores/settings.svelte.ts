// What the reader has chosen, kept in this browser.

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

interface Kept {
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

const FIRST: Kept = {
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

export class Settings {
  kept: Kept = $state(load());
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
    return this.kept.tables[id] ?? {};
  }

  setTable(id: string, part: TableSettings): void {
    this.kept.tables[id] = { ...this.table(id), ...part };
  }

  get isDark(): boolean {
    if (this.kept.theme !== 'system') return this.kept.theme === 'dark';
    return typeof matchMedia === 'undefined' || !matchMedia('(prefers-color-scheme: light)').matches;
  }
}

/** What was kept, with today's first values for what is new; nonsense is dropped. */
function load(): Kept {
  try {
    const kept = JSON.parse(localStorage.getItem(KEY) ?? '{}') as Partial<Kept>;
    return { ...structuredClone(FIRST), ...kept, ticket: { ...FIRST.ticket, ...kept.ticket } };
  } catch {
    return structuredClone(FIRST);
  }
}
