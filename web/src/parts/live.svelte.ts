// Rows whose values never rest. One effect for each row writes into cells that stay, only what has changed; a cell that lights up
// goes out by a sweep over all that are lit. Nothing is animated, so that a frame without news costs nothing.

import type { Attachment } from 'svelte/attachments';

import { paced } from '../link/frame';
import { type Column, isLong } from './columns';

/** How long a move is lit, and how often we look. */
const LIT_MS = 400;
const SWEEP_MS = 50;

/** Fills the cells of a row that have a text: each holds one element. */
export function live<T>(row: T, columns: readonly Column<T>[]): Attachment<HTMLTableRowElement> {
  return (node) => {
    const cells = columns.map(({ text, width }, at) => (text ? new Cell(node.cells[at]!.firstElementChild as HTMLElement, width) : null));
    $effect(() => {
      columns.forEach((column, at) => cells[at]?.write(column.text?.(row) ?? '', column.tone?.(row) ?? '', Number(column.lights?.(row))));
    });
    return () => cells.forEach((cell) => cell && lit.delete(cell));
  };
}

class Cell {
  private readonly letters = document.createTextNode('');
  private readonly base: string;
  private look = '';
  private tone = '';
  private value = NaN;
  private litUntil = 0;

  constructor(
    private readonly node: HTMLElement,
    private readonly width: number,
  ) {
    this.base = node.className;
    node.replaceChildren(this.letters);
  }

  /** A value that is no number does not light up, nor does the first one. */
  write(text: string, tone: string, value: number): void {
    if (this.letters.data !== text) this.letters.data = text;
    if (isLong(text, this.width)) tone += ' cut';
    const isMove = value !== this.value && !Number.isNaN(value) && !Number.isNaN(this.value);
    if (isMove) this.light(tone, value > this.value ? 'rise' : 'fall');
    else if (!lit.has(this)) this.show(tone);
    this.tone = tone;
    this.value = value;
  }

  /** Answers whether it is still lit. */
  fade(now: number): boolean {
    if (this.litUntil > now) return true;
    this.show(this.tone);
    return false;
  }

  private light(tone: string, move: 'rise' | 'fall'): void {
    this.litUntil = performance.now() + LIT_MS;
    this.show(`${tone} ${move}`);
    lit.add(this);
    sweep();
  }

  private show(look: string): void {
    if (this.look === look) return;
    this.look = look;
    this.node.className = `${this.base} ${look}`;
  }
}

const lit = new Set<Cell>();

const sweep = paced(() => {
  const now = performance.now();
  for (const cell of lit) if (!cell.fade(now)) lit.delete(cell);
  if (lit.size > 0) sweep();
}, SWEEP_MS);
