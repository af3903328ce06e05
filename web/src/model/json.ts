// Reading JSON without harm to decimals: numbers under the names below stay text, all other numbers are ids, counts and
// times. JSON.parse alone would make doubles of them.

/** Every name under which the service sends an exact decimal. */
const DECIMALS = new Set([
  'quantity', 'limit', 'stop', 'filledQuantity', 'remainingQuantity', 'avgPrice', 'lastQuantity', 'lastPrice',
  'marketPrice', 'marketValue', 'realizedPL', 'unrealizedPL', 'price', 'commission', 'amount', 'cash',
  'netLiquidationValue', 'strike', 'tickSize', 'lotSize', 'contractSize',
  'bid', 'bidSize', 'ask', 'askSize', 'last', 'lastSize', 'volume', 'size', 'open', 'high', 'low', 'close',
  'maxOrderQty', 'maxOrderValue', 'maxPosition', 'priceCollarPct', 'credit',
  // Nanoseconds since the epoch and 64-bit ids, which a double does not hold either.
  'ts',
]);

/** A whole string, and the number behind it if it is the name of one. Strings are eaten whole, so nothing inside one can match. */
const TOKEN = /"((?:[^"\\]|\\.)*)"(?:(\s*:\s*)(-?\d[\d.eE+-]*))?/g;

export function parseJson(text: string): unknown {
  const safe = text.replace(TOKEN, (token, name: string, colon?: string, number?: string) => {
    if (number === undefined) return token;
    const keep = DECIMALS.has(name) || (number.length > 15 && !Number.isSafeInteger(Number(number)));
    return keep ? `"${name}"${colon}"${number}"` : token;
  });
  return JSON.parse(safe);
}

/**
 * Writing: decimals are text here and become JSON numbers again, digit by digit. A reader of our requests takes text too,
 * but numbers are what the interface describes.
 */
export function writeJson(body: Record<string, unknown>): string {
  const members = Object.entries(body)
    .filter(([, value]) => value !== undefined && value !== '')
    .map(([name, value]) => {
      const isNumber = typeof value === 'string' && DECIMALS.has(name) && /^-?\d+(\.\d+)?$/.test(value);
      return `${JSON.stringify(name)}:${isNumber ? value : JSON.stringify(value)}`;
    });
  return `{${members.join(',')}}`;
}
