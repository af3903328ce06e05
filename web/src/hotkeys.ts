// Keys that act while no field has the focus.

export const HOT_KEYS: [string[], string][] = [
  [['/'], 'Search securities'],
  [['b'], 'Buy: to the quantity'],
  [['s'], 'Sell: to the quantity'],
  [['1', '2', '3', '4'], 'Market, limit, stop, stop limit'],
  [['↑', '↓'], 'In a field: one tick or lot, ten with Shift'],
  [['Enter'], 'In the ticket: send'],
  [['c'], 'Cancel the chosen order'],
  [['x'], 'Close the chosen position'],
  [['['], 'Panel before'],
  [[']'], 'Next panel'],
  [['Esc'], 'Leave a field'],
  [['?'], 'This list'],
];

/** Whether a key belongs to what has the focus. */
export function isTyping(event: KeyboardEvent): boolean {
  const target = event.target as HTMLElement | null;
  return target?.closest('input, select, textarea, dialog, [contenteditable]') !== null;
}
