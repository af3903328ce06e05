// What stands in the cells of a table. One effect for each row writes into cells that stay, only what has changed; a cell that
// flash up goes out by a sweep over all that are flashing. Nothing is animated, so that a frame without news costs nothing.

import type { Attachment } from 'svelte/attachments';

import { throttled } from '../link/frame';
import { type Column, isLong } from './columns';

/** How long a move is flashing, and how often we className. */
const FLASH_MS = 400;
const SWEEP_MS = 50;

/** Fills the cells of a row that have a text: each holds one element. */
export function cellText<T>(row: () => T, columns: readonly Column<T>[], widths: readonly number[]): Attachment<HTMLTableRowElement> {
  return (node) => {
    const cells = columns.map(({ text, cell }, at) =>
      text && !cell ? new Cell(node.cells[at]!.firstElementChild as HTMLElement, widths[at]!) : null);
    $effect(() => {
      const now = row();
      columns.forEach((column, at) => cells[at]?.write(column.text?.(now) ?? '', column.tone?.(now) ?? '', Number(column.flash?.(now))));
    });
    return () => cells.forEach((cell) => cell && flashing.delete(cell));
  };
}

class Cell {
  private readonly textNode = document.createTextNode('');
  private readonly base: string;
  private className = '';
  private tone = '';
  private value = NaN;
  private flashUntil = 0;

  constructor(
    private readonly node: HTMLElement,
    private readonly width: number,
  ) {
    // Without what another of us may have left there.
    this.base = [...node.classList].filter((name) => name === 'cell-text' || name.startsWith('svelte-')).join(' ');
    node.className = this.base;
    node.replaceChildren(this.textNode);
  }

  /** A value that is no number does not light up, nor does the first one. */
  write(text: string, tone: string, value: number): void {
    if (this.textNode.data !== text) this.setText(text);
    if (this.node.title !== '') tone += ' cut';
    const isMove = value !== this.value && !Number.isNaN(value) && !Number.isNaN(this.value);
    if (isMove) this.startFlash(tone, value > this.value ? 'rise' : 'fall');
    else if (!flashing.has(this)) this.show(tone);
    this.tone = tone;
    this.value = value;
  }

  /** Answers whether it is still flashing. */
  endFlash(now: number): boolean {
    if (this.flashUntil > now) return true;
    this.show(this.tone);
    return false;
  }

  /** What may not fit is told in full to who points at it. */
  private setText(text: string): void {
    this.textNode.data = text;
    const title = isLong(text, this.width) ? text : '';
    if (this.node.title !== title) this.node.title = title;
  }

  private startFlash(tone: string, move: 'rise' | 'fall'): void {
    this.flashUntil = performance.now() + FLASH_MS;
    this.show(`${tone} ${move}`);
    flashing.add(this);
    sweep();
  }

  private show(className: string): void {
    if (this.className === className) return;
    this.className = className;
    this.node.className = `${this.base} ${className}`;
  }
}

const flashing = new Set<Cell>();

const sweep = throttled(() => {
  const now = performance.now();
  for (const cell of flashing) if (!cell.endFlash(now)) flashing.delete(cell);
  if (flashing.size > 0) sweep();
}, SWEEP_MS);
