// Hot keys, which work while no field has the focus.

export const HOT_KEYS: [string[], string][] = [
  [['/'], 'Search securities'],
  [['b'], 'Buy: move to the quantity'],
  [['s'], 'Sell: move to the quantity'],
  [['1', '2', '3', '4'], 'Order type: market, limit, stop, stop limit'],
  [['↑', '↓'], 'In a field: change by one tick or lot, with Shift by ten'],
  [['Enter'], 'In the order form: send the order'],
  [['c'], 'Cancel the selected order'],
  [['x'], 'Close the selected position'],
  [['['], 'Previous panel'],
  [[']'], 'Next panel'],
  [['Esc'], 'Clear a search; leave a field'],
  [['?'], 'Show this list'],
];

/** Returns whether the focused element handles the key itself. */
export function isTyping(event: KeyboardEvent): boolean {
  const target = event.target as HTMLElement | null;
  return target?.closest('input, select, textarea, dialog, [contenteditable]') !== null;
}
