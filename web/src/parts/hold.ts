// Keeps rows in place while the user points at a table or edits a row: a row that slides under the
// pointer makes the user act on the wrong one.

import type { Item } from './columns';

export interface Held<T> {
  items: Item<T>[];
  /** Rows that wait until the table is released. */
  fresh: number;
}

/**
 * Arranges the newest rows like the items before: each row keeps its place, with its newest values.
 * A row that has left the table stays and is marked as gone. New rows wait, unless they are all
 * below and so move nothing.
 */
export function holdItems<T>(
  before: readonly Item<T>[],
  next: readonly Item<T>[],
  key: (row: T) => string | number,
): Held<T> {
  if (!before.some((item) => 'row' in item)) return { items: [...next], fresh: 0 };
  const id = (item: Item<T>): string => ('row' in item ? `row ${key(item.row)}` : `group ${item.group}`);
  if (before.every((item, at) => next[at] !== undefined && id(next[at]) === id(item)))
    return { items: [...next], fresh: 0 };
  const newest = new Map(next.map((item) => [id(item), item]));
  const items = before.map((item): Item<T> => {
    const now = newest.get(id(item));
    if (!('row' in item)) return now ?? item;
    return now && 'row' in now ? { row: now.row, at: item.at } : { ...item, isGone: true };
  });
  const known = new Set(before.map(id));
  const fresh = next.filter((item) => 'row' in item && !known.has(id(item))).length;
  return { items, fresh };
}

/** Returns whether a row that both lists have is at another place. */
export function hasMoved<T>(
  before: readonly Item<T>[],
  next: readonly Item<T>[],
  key: (row: T) => string | number,
): boolean {
  const idAt = (items: readonly Item<T>[], at: number): string | number | undefined => {
    const item = items[at];
    return item && 'row' in item ? key(item.row) : undefined;
  };
  for (let at = 0; at < Math.min(before.length, next.length); at++) {
    if (idAt(before, at) !== idAt(next, at)) return true;
  }
  return false;
}
