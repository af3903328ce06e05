import { describe, expect, it } from 'vitest';

import { type Column, fitColumns, fitWidths, groupRows, isWhole, narrowWidths, sortRows } from './columns';

const column: Column<{ n?: number }> = { key: 'n', label: 'n', width: 1, sort: (row) => row.n };

describe('tables', () => {
  it('sort rows both ways, with missing values last', () => {
    const rows = [{ n: 2 }, {}, { n: 1 }, { n: 3 }];
    expect(sortRows(rows, column, false).map((row) => row.n)).toEqual([1, 2, 3, undefined]);
    expect(sortRows(rows, column, true).map((row) => row.n)).toEqual([3, 2, 1, undefined]);
    expect(sortRows(rows, undefined, true)).toEqual(rows);
  });

  it('group rows under headings and keep their order', () => {
    const items = groupRows(['b2', 'a1', 'b1'], { key: 'k', label: 'k', of: (row) => row[0]! });
    expect(items).toEqual([
      { group: 'a', count: 1 },
      { row: 'a1', at: 0 },
      { group: 'b', count: 2 },
      { row: 'b2', at: 1 },
      { row: 'b1', at: 2 },
    ]);
  });

  it('shrink the widest columns first', () => {
    expect(fitWidths([100, 60, 400], 600)).toEqual([100, 60, 400]);
    expect(fitWidths([100, 60, 400], 374)).toEqual([100, 60, 214]);
    expect(fitWidths([86, 48, 80, 88], 256)).toEqual([69, 48, 69, 69]);
    expect(fitWidths([50, 50], 0)).toEqual([0, 0]);
  });

  it('drop columns in their order until the others fit', () => {
    const columns = [
      { ...column, key: 'a', width: 100 },
      { ...column, key: 'b', width: 50, drop: 2 },
      { ...column, key: 'c', width: 80, drop: 1 },
      { ...column, key: 'd', width: 60 },
    ];
    const kept = (room: number): string =>
      fitColumns(columns, room)
        .map(({ key }) => key)
        .join('');
    expect([290, 289, 210, 209, 0].map(kept)).toEqual(['abcd', 'abd', 'abd', 'ad', 'ad']);
  });

  it('never cut numbers, which are at the right', () => {
    expect([column, { ...column, align: 'right' as const }, { ...column, whole: true }].map(isWhole)).toEqual([
      false,
      true,
      true,
    ]);
  });

  it('share a narrow screen, except columns with names and buttons', () => {
    const columns: Column<{ n?: number }>[] = [
      { ...column, width: 180, whole: true },
      { ...column, width: 48 },
      { ...column, width: 80, whole: true, align: 'right' },
      { ...column, width: 260, narrow: 70 },
      { ...column, width: 118, pinned: true },
    ];
    expect(narrowWidths(columns, 378)).toEqual([94, 48, 48, 70, 118]);
    expect(narrowWidths(columns, 500)).toEqual([94, 48, 80, 70, 118]);
  });
});
