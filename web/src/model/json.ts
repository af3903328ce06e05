// Reads and writes JSON with exact decimals. Numbers under the names below stay text; all other
// numbers are ids, counts and times. JSON.parse alone would convert decimals to doubles.

/** Every name under which the service sends an exact decimal. */
const DECIMALS = new Set([
  'quantity',
  'limit',
  'stop',
  'filledQuantity',
  'remainingQuantity',
  'avgPrice',
  'lastQuantity',
  'lastPrice',
  'marketPrice',
  'marketValue',
  'realizedPL',
  'unrealizedPL',
  'price',
  'commission',
  'amount',
  'cash',
  'netLiquidationValue',
  'grossExposure',
  'grossPL',
  'fees',
  'netPL',
  'position',
  'strike',
  'tickSize',
  'lotSize',
  'contractSize',
  'bid',
  'bidSize',
  'ask',
  'askSize',
  'last',
  'lastSize',
  'volume',
  'size',
  'open',
  'high',
  'low',
  'close',
  'previousClose',
  'maxOrderQty',
  'maxOrderValue',
  'maxPosition',
  'priceCollarPct',
  'credit',
  // Nanoseconds since the epoch, which a double cannot represent either.
  'ts',
]);

/**
 * A complete string, and the number after it if the string is a name. A string matches as a whole,
 * so its content cannot match.
 */
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
 * Writes decimals as JSON numbers, digit by digit. The service accepts text too, but its
 * description says numbers.
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
