// Checks an order before it is sent, and builds its request. The service repeats all checks; these
// give an earlier response.

import { type Decimal, decimal, formatDecimal, isMultiple, multiply, units } from './decimal';
import type { Account, Limits, Order, OrderType, Position, Risk, Security, Side, Strategy, Tick, Tif } from './types';

export interface Draft {
  securityId: number | null;
  type: OrderType;
  side: Side;
  quantity: Decimal;
  limit: Decimal;
  stop: Decimal;
  tif: Tif;
  /** In the time zone of the browser, as a `datetime-local` field returns it. */
  tifDate: string;
  strategyName: string;
  /** Null: the service uses the only account of the exchange. */
  accountId: number | null;
  exchangeOrder: boolean;
}

export type Field = 'security' | 'quantity' | 'limit' | 'stop' | 'tifDate' | 'account' | 'strategy' | 'order';

export interface Finding {
  field: Field;
  text: string;
  /** An error prevents sending the order; a warning does not. */
  isError: boolean;
}

/** Data that the checks of an order need. */
export interface OrderContext {
  security: Security | undefined;
  tick: Tick | undefined;
  account: Account | undefined;
  strategy: Strategy | undefined;
  position: Position | undefined;
  risk: Risk | null;
  openOrders: number;
  now: number;
}

export const hasLimit = (type: OrderType): boolean => type === 'LIMIT' || type === 'STOP_LIMIT';
export const hasStop = (type: OrderType): boolean => type === 'STOP' || type === 'STOP_LIMIT';

export function findings(draft: Draft, context: OrderContext): Finding[] {
  const { security } = context;
  if (!security) return [{ field: 'security', text: 'Select a security', isError: true }];
  return [
    ...checkState(draft, context, security),
    ...checkQuantity(draft, security),
    ...(hasLimit(draft.type) ? checkPrice('limit', draft.limit, security) : []),
    ...(hasStop(draft.type) ? checkPrice('stop', draft.stop, security) : []),
    ...checkExpiry(draft, context.now),
    ...checkRisk(draft, context, security),
    ...checkMarket(draft, context.tick),
  ];
}

/** Returns the body of the request, with only the prices of the order type. */
export function request(draft: Draft): Record<string, unknown> {
  return {
    securityId: draft.securityId,
    side: draft.side,
    quantity: plain(draft.quantity),
    limit: hasLimit(draft.type) ? plain(draft.limit) : undefined,
    stop: hasStop(draft.type) ? plain(draft.stop) : undefined,
    strategyName: draft.strategyName,
    accountId: draft.accountId ?? undefined,
    tif: draft.tif,
    tifDate: draft.tif === 'GTD' ? new Date(draft.tifDate).toISOString() : undefined,
    exchangeOrder: draft.exchangeOrder || undefined,
  };
}

/** Returns the value of the order without commission, or null if no price is known. */
export function value(draft: Draft, { security, tick }: OrderContext): Decimal | null {
  const size = units(security?.contractSize);
  const qty = units(draft.quantity);
  const at = units(expectedPrice(draft, tick));
  return size === null || qty === null || at === null ? null : decimal(multiply(multiply(at, qty), size));
}

/** What an order would use of one limit. */
export interface LimitShare {
  /** In percent, rounded down. */
  percent: number;
  text: string;
}

/**
 * Returns the limit of which the order would use the largest share; null without limits. The price
 * collar has no share, and open orders count one by one.
 */
export function largestShare(draft: Draft, context: OrderContext): LimitShare | null {
  const cost = value(draft, context);
  const after = positionAfter(context.position?.quantity, draft);
  const shares = limitsOf(draft, context).flatMap((limits) => {
    const who = limits.strategyName ?? limits.accountName ?? '';
    return [
      shareOf(units(draft.quantity), limits.maxOrderQty, `the largest order quantity of ${who}`),
      shareOf(cost === null ? null : units(cost), limits.maxOrderValue, `the largest order value of ${who}`),
      limits.strategyName ? shareOf(after, limits.maxPosition, `the largest position of ${who}`) : [],
    ].flat();
  });
  return shares.reduce<LimitShare | null>((most, one) => (most && most.percent >= one.percent ? most : one), null);
}

function shareOf(amount: bigint | null, most: Decimal, what: string): LimitShare[] {
  const limit = units(most) ?? 0n;
  if (limit <= 0n || amount === null) return [];
  const percent = Number((amount * 100n) / limit);
  return [{ percent, text: `${percent} % of ${what} (${formatDecimal(most)})` }];
}

/** Path segment of each order type. */
export const PATH: Record<OrderType, string> = {
  MARKET: 'market',
  LIMIT: 'limit',
  STOP: 'stop',
  STOP_LIMIT: 'stoplimit',
};

/** Returns the body that modifies an open order; null if nothing changes. */
export function change(
  order: Order,
  changes: { quantity: Decimal; limit: Decimal; stop: Decimal },
): Record<string, unknown> | null {
  const differs = (now: Decimal | undefined, then: Decimal): boolean =>
    units(then) !== null && units(now) !== units(then);
  const body: Record<string, unknown> = {};
  if (differs(order.quantity, changes.quantity)) body['quantity'] = plain(changes.quantity);
  if (hasLimit(order.type) && differs(order.limit, changes.limit)) body['limit'] = plain(changes.limit);
  if (hasStop(order.type) && differs(order.stop, changes.stop)) body['stop'] = plain(changes.stop);
  return Object.keys(body).length ? { intId: order.intId, accountId: order.accountId, ...body } : null;
}

/**
 * Returns the limit of which a modified order would use the largest share, if it would use a larger
 * one than before; otherwise null. `context` is that of its security, strategy and account.
 */
export function changedShare(
  order: Order,
  changes: { quantity: Decimal; limit: Decimal; stop: Decimal },
  context: OrderContext,
): LimitShare | null {
  const { securityId, type, side, tif, accountId, strategyName = '' } = order;
  const draft: Draft = {
    ...changes,
    securityId,
    type,
    side,
    tif,
    accountId,
    strategyName,
    tifDate: '',
    exchangeOrder: false,
  };
  // The position has the filled part of the order already.
  const filled = units(order.filledQuantity) ?? 0n;
  const held = (units(context.position?.quantity) ?? 0n) - (side === 'BUY' ? filled : -filled);
  const position = context.position && { ...context.position, quantity: decimal(held) };
  const shareOf = (changed: Draft) => largestShare(changed, { ...context, position });
  const after = shareOf(draft);
  const before = shareOf({ ...draft, quantity: order.quantity, limit: order.limit ?? '', stop: order.stop ?? '' });
  return after && after.percent > (before?.percent ?? 0) ? after : null;
}

/** Checks quantity and prices of a modified order. */
export function changeFindings(
  order: Order,
  changes: { quantity: Decimal; limit: Decimal; stop: Decimal },
  security: Security,
): Finding[] {
  const filled = units(order.filledQuantity) ?? 0n;
  const wanted = units(changes.quantity);
  return [
    ...checkQuantity(changes, security),
    ...(wanted !== null && wanted > 0n && wanted < filled
      ? [error('quantity', `Already filled: ${formatDecimal(order.filledQuantity)}`)]
      : []),
    ...(hasLimit(order.type) ? checkPrice('limit', changes.limit, security) : []),
    ...(hasStop(order.type) ? checkPrice('stop', changes.stop, security) : []),
  ];
}

function checkState(draft: Draft, context: OrderContext, security: Security): Finding[] {
  const found: Finding[] = [];
  if (!security.tradeable) found.push(error('security', `${security.symbol} is not tradeable`));
  if (context.account && !context.account.active)
    found.push(error('account', `Account ${context.account.name} is not active`));
  const { strategy } = context;
  if (strategy && strategy.name !== 'SERVER' && strategy.phase !== 'RUNNING') {
    found.push(error('strategy', `${strategy.name} is in ${strategy.phase}, not RUNNING`));
  }
  if (context.risk?.killSwitch) found.push(error('order', 'The kill switch is on'));
  return found;
}

function checkQuantity(draft: { quantity: Decimal }, security: Security): Finding[] {
  const qty = units(draft.quantity);
  if (qty === null && draft.quantity !== '') return [error('quantity', notANumber(draft.quantity))];
  if (qty === null || qty <= 0n) return [error('quantity', 'Must be above zero')];
  return isMultiple(qty, security.lotSize)
    ? []
    : [error('quantity', `Must be a multiple of ${formatDecimal(security.lotSize)}`)];
}

function checkPrice(field: 'limit' | 'stop', text: Decimal, security: Security): Finding[] {
  const exact = units(text);
  if (exact === null) return [error(field, text === '' ? `Enter a ${field} price` : notANumber(text))];
  if (exact <= 0n && security.type !== 'FUTURE') return [error(field, 'Must be above zero')];
  return isMultiple(exact, security.tickSize)
    ? []
    : [error(field, `Must be a multiple of ${formatDecimal(security.tickSize)}`)];
}

function checkExpiry(draft: Draft, now: number): Finding[] {
  if (draft.tif !== 'GTD') return [];
  const until = Date.parse(draft.tifDate);
  if (Number.isNaN(until)) return [error('tifDate', 'Enter a date and time')];
  return until <= now ? [error('tifDate', 'Must be in the future')] : [];
}

function checkRisk(draft: Draft, context: OrderContext, security: Security): Finding[] {
  const found = limitsOf(draft, context).flatMap((limits) => limited(draft, context, limits));
  const restrictions = context.risk?.restrictions ?? [];
  if (restrictions.some((row) => row.securityId === security.id && appliesTo(row, draft, context))) {
    found.push(error('security', `${security.symbol} is restricted`));
  }
  return found;
}

/** Returns the limits of the order's strategy and account. */
const limitsOf = (draft: Draft, context: OrderContext): Limits[] =>
  (context.risk?.limits ?? []).filter((limits) => appliesTo(limits, draft, context));

const appliesTo = (
  row: { strategyName?: string; accountName?: string },
  draft: Draft,
  { account }: OrderContext,
): boolean =>
  row.strategyName === draft.strategyName || (row.accountName !== undefined && row.accountName === account?.name);

function limited(draft: Draft, context: OrderContext, limits: Limits): Finding[] {
  const who = limits.strategyName ?? limits.accountName ?? '';
  const found: Finding[] = [];
  const above = (amount: bigint | null, most: Decimal): boolean => {
    const limit = units(most) ?? 0n;
    return limit > 0n && amount !== null && amount > limit;
  };
  const qty = units(draft.quantity);
  if (!limits.tradingEnabled) found.push(error('order', `Trading is off for ${who}`));
  if (above(qty, limits.maxOrderQty))
    found.push(error('quantity', `At most ${formatDecimal(limits.maxOrderQty)} (${who})`));
  const cost = value(draft, context);
  if (above(cost === null ? null : units(cost), limits.maxOrderValue)) {
    found.push(error('order', `Value above ${formatDecimal(limits.maxOrderValue)} (${who})`));
  }
  if (limits.maxOpenOrders > 0 && context.openOrders >= limits.maxOpenOrders && limits.strategyName) {
    found.push(error('order', `${limits.maxOpenOrders} orders are already open (${who})`));
  }
  const after = positionAfter(context.position?.quantity, draft);
  if (limits.strategyName && above(after, limits.maxPosition)) {
    found.push(error('quantity', `Position above ${formatDecimal(limits.maxPosition)} (${who})`));
  }
  return [...found, ...checkCollar(draft, context.tick, limits, who)];
}

/** Checks the distance of a limit price from the last price. */
function checkCollar(draft: Draft, tick: Tick | undefined, limits: Limits, who: string): Finding[] {
  const [pct, last, limit] = [units(limits.priceCollarPct) ?? 0n, units(tick?.last), units(draft.limit)];
  if (!hasLimit(draft.type) || pct <= 0n || last === null || limit === null) return [];
  const away = limit > last ? limit - last : last - limit;
  return away * 100n > multiply(last < 0n ? -last : last, pct)
    ? [error('limit', `More than ${formatDecimal(limits.priceCollarPct)} % from last (${who})`)]
    : [];
}

/** Warns about orders that are valid and may not be intended. */
export function checkMarket(draft: Pick<Draft, 'type' | 'side' | 'limit' | 'stop'>, tick: Tick | undefined): Finding[] {
  const [bid, ask, limit, stop] = [units(tick?.bid), units(tick?.ask), units(draft.limit), units(draft.stop)];
  const buys = draft.side === 'BUY';
  const found: Finding[] = [];
  if (
    draft.type === 'LIMIT' &&
    limit !== null &&
    (buys ? ask !== null && limit >= ask : bid !== null && limit <= bid)
  ) {
    found.push(warning('limit', 'Crosses the market: the order fills immediately'));
  }
  if (hasStop(draft.type) && stop !== null && (buys ? ask !== null && stop <= ask : bid !== null && stop >= bid)) {
    found.push(warning('stop', 'Already reached: the order triggers immediately'));
  }
  if (!tick?.bid && !tick?.ask && draft.type === 'MARKET')
    found.push(warning('order', 'No quote: the order may not fill'));
  return found;
}

/** Returns the absolute size of the position after the order. */
function positionAfter(held: Decimal | undefined, draft: Draft): bigint | null {
  const qty = units(draft.quantity);
  if (qty === null) return null;
  const after = (units(held) ?? 0n) + (draft.side === 'BUY' ? qty : -qty);
  return after < 0n ? -after : after;
}

function expectedPrice(draft: Draft, tick: Tick | undefined): Decimal | undefined {
  if (hasLimit(draft.type)) return draft.limit;
  if (hasStop(draft.type)) return draft.stop;
  return (draft.side === 'BUY' ? tick?.ask : tick?.bid) ?? tick?.last;
}

/** Normalises typed text such as `+.50` for JSON. */
function plain(text: Decimal): Decimal {
  const exact = units(text);
  return exact === null ? text : decimal(exact);
}

const notANumber = (text: string): string => `“${text}” is not a number. Write it like 1234.5`;
const error = (field: Field, text: string): Finding => ({ field, text, isError: true });
const warning = (field: Field, text: string): Finding => ({ field, text, isError: false });
