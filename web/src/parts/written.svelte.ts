// What stands in the cells of a table. One effect for each row writes into cells that stay, only what has changed; a cell that
// lights up goes out by a sweep over all that are lit. Nothing is animated, so that a frame without news costs nothing.

import type { Attachment } from 'svelte/attachments';

import { paced } from '../link/frame';
import { type Column, isLong } from './columns';

/** How long a move is lit, and how often we look. */
const LIT_MS = 400;
const SWEEP_MS = 50;

/** Fills the cells of a row that have a text: each holds one element. */
export function written<T>(row: () => T, columns: readonly Column<T>[], widths: readonly number[]): Attachment<HTMLTableRowElement> {
  return (node) => {
    const cells = columns.map(({ text, cell }, at) =>
      text && !cell ? new Cell(node.cells[at]!.firstElementChild as HTMLElement, widths[at]!) : null);
    $effect(() => {
      const now = row();
      columns.forEach((column, at) => cells[at]?.write(column.text?.(now) ?? '', column.tone?.(now) ?? '', Number(column.lights?.(now))));
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
    // Without what another of us may have left there.
    this.base = [...node.classList].filter((name) => name === 'written' || name.startsWith('svelte-')).join(' ');
    node.className = this.base;
    node.replaceChildren(this.letters);
  }

  /** A value that is no number does not light up, nor does the first one. */
  write(text: string, tone: string, value: number): void {
    if (this.letters.data !== text) this.spell(text);
    if (this.node.title !== '') tone += ' cut';
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

  /** What may not fit is told in full to who points at it. */
  private spell(text: string): void {
    this.letters.data = text;
    const title = isLong(text, this.width) ? text : '';
    if (this.node.title !== title) this.node.title = title;
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
