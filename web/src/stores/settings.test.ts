import { describe, expect, it } from 'vitest';

import { movePart } from '../model/layout';
import { SettingsStore } from './settings.svelte';

describe('settings of the page', () => {
  it('keep named layouts with their panels and columns', () => {
    const settings = new SettingsStore();
    settings.saved.layout.top = 0.3;
    settings.saved.layout.places = movePart(settings.saved.layout.places, 'chart', 'dock');
    settings.saved.docks[0] = 'positions';
    settings.setTable('orders', { hidden: ['time'] });
    settings.saveLayout('desk');
    settings.restoreLayout();
    expect(settings.saved.layout).toMatchObject({ top: 0.58, places: { chart: 'chart' } });
    expect([settings.saved.docks[0], settings.table('orders')]).toEqual(['orders', {}]);
    settings.restoreLayout('desk');
    expect(settings.saved.layout).toMatchObject({ top: 0.3, places: { chart: 'dock', dock: 'chart' } });
    expect([settings.saved.docks[0], settings.table('orders')]).toEqual(['positions', { hidden: ['time'] }]);
    // A change after that does not change the saved layout.
    settings.saved.layout.top = 0.7;
    settings.restoreLayout('desk');
    expect(settings.saved.layout.top).toBe(0.3);
    settings.removeLayout('desk');
    settings.restoreLayout('desk');
    expect(settings.saved.layout.top).toBe(0.58);
  });

  it('keep watch lists', () => {
    const settings = new SettingsStore();
    settings.toggleWatched('tech', 1);
    settings.toggleWatched('tech', 2);
    settings.toggleWatched('tech', 1);
    expect(settings.saved.watchLists).toEqual({ tech: [2] });
    settings.saved.watchList = 'tech';
    settings.removeWatchList('tech');
    expect([settings.saved.watchLists, settings.saved.watchList]).toEqual([{}, '']);
  });
});
