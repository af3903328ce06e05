// The text of table cells. One effect per row writes changed text into existing elements. A value
// that changes flashes, and a timer ends the flashes of all cells together. Nothing is animated, so
// that a frame without changes costs nothing.

import type { Attachment } from 'svelte/attachments';

import { throttled } from '../link/frame';
import { type Column, isLong, isWhole } from './columns';

/** Duration of a flash, and interval at which flashes are ended. */
const FLASH_MS = 400;
const SWEEP_MS = 50;

/** Writes the cells of a row that have text. Each such cell holds one element. */
export function cellText<T>(
  row: () => T,
  columns: readonly Column<T>[],
  widths: readonly number[],
): Attachment<HTMLTableRowElement> {
  return (node) => {
    const cells = columns.map(({ text, cell }, at) =>
      text && !cell
        ? new Cell(node.cells[at]!.firstElementChild as HTMLElement, widths[at]!, isWhole(columns[at]!))
        : null,
    );
    $effect(() => {
      const now = row();
      columns.forEach((column, at) =>
        cells[at]?.write(column.text?.(now) ?? '', column.tone?.(now) ?? '', Number(column.flash?.(now))),
      );
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
    private readonly isWhole: boolean,
  ) {
    // Removes class names that a previous instance has set.
    this.base = [...node.classList].filter((name) => name === 'cell-text' || name.startsWith('svelte-')).join(' ');
    node.className = this.base;
    node.replaceChildren(this.textNode);
  }

  /** Writes text and value. NaN does not flash, nor does the first value. */
  write(text: string, tone: string, value: number): void {
    if (this.textNode.data !== text) this.setText(text);
    if (this.node.title !== '') tone += this.isWhole ? ' wrap' : ' cut';
    const isMove = value !== this.value && !Number.isNaN(value) && !Number.isNaN(this.value);
    if (isMove) this.startFlash(tone, value > this.value ? 'rise' : 'fall');
    else if (!flashing.has(this)) this.show(tone);
    this.tone = tone;
    this.value = value;
  }

  /** Ends the flash if its time is over. Returns whether the cell still flashes. */
  updateFlash(now: number): boolean {
    if (this.flashUntil > now) return true;
    this.show(this.tone);
    return false;
  }

  /** Sets the text. A text that may not fit is also the tooltip. */
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
  for (const cell of flashing) if (!cell.updateFlash(now)) flashing.delete(cell);
  if (flashing.size > 0) sweep();
}, SWEEP_MS);
