import { describe, expect, it } from 'vitest';

import { type Item, groupRows, hasWords } from './columns';
import { hasMoved, holdItems } from './hold';

interface Row {
  id: string;
  value: number;
}
const rows = (...ids: string[]): Item<Row>[] =>
  groupRows(
    ids.map((id): Row => ({ id, value: 1 })),
    undefined,
  );
const newer = (...ids: string[]): Item<Row>[] =>
  groupRows(
    ids.map((id): Row => ({ id, value: 2 })),
    undefined,
  );
const key = (row: Row): string => row.id;
const text = (items: readonly Item<Row>[]): string[] =>
  items.map((item) => ('row' in item ? `${item.row.id}${item.row.value}${item.isGone ? ' gone' : ''}` : item.group));

describe('rows under the pointer', () => {
  it('keep their places and get their newest values', () => {
    const { items, fresh } = holdItems(rows('a', 'b', 'c'), newer('x', 'c', 'b', 'a'), key);
    expect([text(items), fresh]).toEqual([['a2', 'b2', 'c2'], 1]);
  });

  it('stay when they have left the table, and are marked', () => {
    const { items, fresh } = holdItems(rows('a', 'b', 'c'), newer('c', 'a'), key);
    expect([text(items), fresh]).toEqual([['a2', 'b1 gone', 'c2'], 0]);
  });

  it('do not wait when they move nothing', () => {
    expect(text(holdItems(rows('a'), newer('a', 'b'), key).items)).toEqual(['a2', 'b2']);
    expect(text(holdItems([], newer('b'), key).items)).toEqual(['b2']);
  });

  it('keep their headings', () => {
    const section = { label: 'Finished', has: (row: Row) => row.value > 1 };
    const before = groupRows(
      [
        { id: 'a', value: 1 },
        { id: 'b', value: 2 },
      ],
      undefined,
      section,
    );
    expect(text(before)).toEqual(['a1', 'Finished', 'b2']);
    // The open order finishes: it stays in its place.
    const next = groupRows(
      [
        { id: 'a', value: 3 },
        { id: 'b', value: 2 },
      ],
      undefined,
      section,
    );
    expect(text(holdItems(before, next, key).items)).toEqual(['a3', 'Finished', 'b2']);
  });

  it('count as moved when another row is at their place', () => {
    expect(hasMoved(rows('a', 'b'), newer('a', 'b', 'c'), key)).toBe(false);
    expect(hasMoved(rows('a', 'b'), newer('a'), key)).toBe(false);
    expect(hasMoved(rows('a', 'b'), newer('x', 'a', 'b'), key)).toBe(true);
  });
});

describe('a search', () => {
  it('needs all words, in any order and case', () => {
    expect(hasWords('BUY AAPL limit', 'aapl buy')).toBe(true);
    expect(hasWords('BUY AAPL limit', 'aapl sell')).toBe(false);
    expect(hasWords('BUY', '  ')).toBe(true);
  });
});
