// Columns of a table, and ways to group its rows.

import type { Snippet } from 'svelte';

export interface Column<T> {
  key: string;
  label: string;
  /** Label on a narrow screen, if it differs. */
  narrowLabel?: string;
  /** Full label, shown as a tooltip. */
  title?: string;
  width: number;
  align?: 'right';
  text?: (row: T) => string;
  /**
   * Content instead of text. Its actions are armed, which is the second argument, when the row has
   * been still for a moment.
   */
  cell?: Snippet<[T, boolean]>;
  /** Sort key of a row; without it, the column cannot be sorted. */
  sort?: (row: T) => string | number | bigint | undefined;
  /** Value whose changes flash. */
  flash?: (row: T) => string | undefined;
  tone?: (row: T) => 'up' | 'down' | 'dim' | 'warn' | undefined;
  /** Hidden by default; with a number, hidden only if the table is narrower. */
  extra?: boolean | number;
  /**
   * Place among the columns that leave a table in which not all fit: the lowest leaves first. Columns
   * without it stay, so that the table scrolls at worst.
   */
  drop?: number;
  /** Shown on a narrow screen too; with a number, in this width. */
  narrow?: boolean | number;
  /** Stays at the right edge. */
  pinned?: boolean;
  /**
   * Shows its whole text, because a part of it would mean something else. On a narrow screen, a long
   * text has two lines. Columns at the right have numbers, and always show them whole.
   */
  whole?: boolean;
}

export interface Grouping<T> {
  key: string;
  label: string;
  of: (row: T) => string;
}

/** Rows that stand below the others, under a heading. */
export interface Section<T> {
  label: string;
  has: (row: T) => boolean;
}

/** A heading, or a row at its place among the rows. A row that is gone has left the table. */
export type Item<T> = { group: string; count: number } | { row: T; at: number; isGone?: boolean };

/** Returns whether a column shows its whole text. */
export const isWhole = <T>({ align, whole }: Column<T>): boolean => whole ?? align === 'right';

/** Upper estimates of the width of a character and of the padding of a cell, in pixels. */
const CHAR_PX = 7;
const PADDING_PX = 14;

/**
 * Returns whether a text may not fit. Only such cells are clipped, because clipping every cell
 * costs more than its text.
 */
export const isLong = (text: string, width: number): boolean => text.length * CHAR_PX > width - PADDING_PX;

/** Sorts rows by a column. Rows without a value are last in both directions. */
export function sortRows<T>(rows: readonly T[], column: Column<T> | undefined, down: boolean): T[] {
  const by = column?.sort;
  if (!by) return [...rows];
  const keyed = rows.map((row) => ({ row, key: by(row) }));
  keyed.sort((a, b) => {
    if (a.key === undefined || b.key === undefined) return Number(a.key === undefined) - Number(b.key === undefined);
    const order = a.key < b.key ? -1 : a.key > b.key ? 1 : 0;
    return down ? -order : order;
  });
  return keyed.map(({ row }) => row);
}

/**
 * Groups rows and adds a heading before each group. Groups are sorted by name. The rows of a section
 * follow the others.
 */
export function groupRows<T>(rows: readonly T[], grouping: Grouping<T> | undefined, section?: Section<T>): Item<T>[] {
  const below = section ? rows.filter((row) => section.has(row)) : [];
  const above = below.length > 0 ? rows.filter((row) => !section!.has(row)) : rows;
  const groups: [string | null, T[]][] = [...grouped(above, grouping)];
  if (below.length > 0) groups.push([section!.label, below]);
  let at = 0;
  return groups.flatMap(([group, members]): Item<T>[] => [
    ...(group === null ? [] : [{ group, count: members.length }]),
    ...members.map((row) => ({ row, at: at++ })),
  ]);
}

function grouped<T>(rows: readonly T[], grouping: Grouping<T> | undefined): [string | null, T[]][] {
  if (!grouping) return [[null, [...rows]]];
  const groups = new Map<string, T[]>();
  for (const row of rows) {
    const group = groups.get(grouping.of(row));
    if (group) group.push(row);
    else groups.set(grouping.of(row), [row]);
  }
  return [...groups].sort(([a], [b]) => (a < b ? -1 : 1));
}

/** Returns the columns that fit into a width, without those that leave first. */
export function fitColumns<T>(columns: readonly Column<T>[], room: number): Column<T>[] {
  let total = columns.reduce((sum, { width }) => sum + width, 0);
  const rising = columns.filter(({ drop }) => drop !== undefined).sort((a, b) => a.drop! - b.drop!);
  const gone = new Set<Column<T>>();
  for (const column of rising) {
    if (total <= room) break;
    gone.add(column);
    total -= column.width;
  }
  return columns.filter((column) => !gone.has(column));
}

/** Fits widths into the available room: the widest shrink first, all to the same width. */
export function fitWidths(widths: readonly number[], room: number): number[] {
  let left = room;
  let most = Infinity;
  const rising = [...widths].sort((a, b) => a - b);
  for (const [at, width] of rising.entries()) {
    const share = left / (rising.length - at);
    if (width > share) {
      most = Math.max(0, Math.floor(share));
      break;
    }
    left -= width;
  }
  return widths.map((width) => Math.min(width, most));
}

/** Width of a column of names on a narrow screen, where a long name has two lines. */
const WHOLE_PX_NARROW = 94;

/**
 * Returns the widths of columns on a narrow screen: they share the room, except those with buttons
 * and names.
 */
export function narrowWidths<T>(columns: readonly Column<T>[], room: number): number[] {
  const fixed = columns.map(({ align, narrow, pinned, whole, width }) => {
    if (typeof narrow === 'number') return narrow;
    if (pinned) return width;
    return whole && !align ? Math.min(width, WHOLE_PX_NARROW) : undefined;
  });
  const taken = fixed.reduce<number>((sum, width) => sum + (width ?? 0), 0);
  const shared = columns.filter((_, at) => fixed[at] === undefined).map(({ width }) => width);
  const given = fitWidths(shared, room - taken);
  return fixed.map((width) => width ?? given.shift()!);
}

/** Returns whether a text has all words, in any order and case. */
export function hasWords(text: string, words: string): boolean {
  const lower = text.toLowerCase();
  return words
    .toLowerCase()
    .split(/\s+/)
    .every((word) => lower.includes(word));
}

/** Returns the text of a row in all columns, for searching. */
export function rowText<T>(row: T, columns: readonly Column<T>[]): string {
  return columns.map(({ text, sort }) => text?.(row) ?? String(sort?.(row) ?? '')).join('\n');
}
