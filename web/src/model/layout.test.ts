import { describe, expect, it } from 'vitest';

import { DEFAULT_LAYOUT, layoutFrom, movePart } from './layout';

describe('a layout', () => {
  it('swaps two parts when one moves', () => {
    const moved = movePart(DEFAULT_LAYOUT.places, 'chart', 'dock');
    expect(moved).toEqual({ market: 'market', chart: 'dock', side: 'side', dock: 'chart' });
    expect(movePart(moved, 'chart', 'dock')).toEqual(moved);
  });

  it('is the default where saved data is missing or impossible', () => {
    expect(layoutFrom(undefined)).toEqual(DEFAULT_LAYOUT);
    const places = { market: 'chart', chart: 'chart', side: 'side', dock: 'dock' } as const;
    expect(layoutFrom({ places, market: 7, top: 0.3, side: 'wide' as never })).toEqual({ ...DEFAULT_LAYOUT, top: 0.3 });
  });
});
