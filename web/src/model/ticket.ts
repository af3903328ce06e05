// An order before it is sent: what is wrong with it as far as this side can tell, and the request it becomes. The service checks
// everything again; this only saves the way there.

import { type Decimal, decimal, isMultiple, shown, times, units } from './decimal';
import type { Account, Limits, Order, OrderType, Position, Risk, Security, Side, Strategy, Tick, Tif } from './types';

export interface Draft {
  securityId: number | null;
  type: OrderType;
  side: Side;
  quantity: Decimal;
  limit: Decimal;
  stop: Decimal;
  tif: Tif;
  /** In the reader's zone, as a `datetime-local` field gives it. */
  tifDate: string;
  strategyName: string;
  /** Null: the service picks the only account of the exchange. */
  accountId: number | null;
  exchangeOrder: boolean;
}

export type Field = 'security' | 'quantity' | 'limit' | 'stop' | 'tifDate' | 'account' | 'strategy' | 'order';

export interface Finding {
  field: Field;
  text: string;
  /** An error keeps the order here; a warning only says so. */
  grave: boolean;
}

/** What is known around the order. */
export interface Surroundings {
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

export function findings(draft: Draft, around: Surroundings): Finding[] {
  const { security } = around;
  if (!security) return [{ field: 'security', text: 'Choose a security', grave: true }];
  return [
    ...standing(draft, around, security),
    ...quantity(draft, security),
    ...(hasLimit(draft.type) ? price('limit', draft.limit, security) : []),
    ...(hasStop(draft.type) ? price('stop', draft.stop, security) : []),
    ...expiry(draft, around.now),
    ...risk(draft, around, security),
    ...manners(draft, around.tick),
  ];
}

/** The body of the request: nothing that its type does not have. */
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

/** What the order would cost or bring, before commission, as far as a price is known. */
export function value(draft: Draft, { security, tick }: Surroundings): Decimal | null {
  const size = units(security?.contractSize);
  const qty = units(draft.quantity);
  const at = units(expected(draft, tick));
  return size === null || qty === null || at === null ? null : decimal(times(times(at, qty), size));
}

/** The path segment of each type. */
export const PATH: Record<OrderType, string> = {
  MARKET: 'market', LIMIT: 'limit', STOP: 'stop', STOP_LIMIT: 'stoplimit',
};

/** The body that changes an open order; null if nothing would change. */
export function change(order: Order, wish: { quantity: Decimal; limit: Decimal; stop: Decimal }): Record<string, unknown> | null {
  const differs = (now: Decimal | undefined, then: Decimal): boolean => units(then) !== null && units(now) !== units(then);
  const body: Record<string, unknown> = {};
  if (differs(order.quantity, wish.quantity)) body['quantity'] = plain(wish.quantity);
  if (hasLimit(order.type) && differs(order.limit, wish.limit)) body['limit'] = plain(wish.limit);
  if (hasStop(order.type) && differs(order.stop, wish.stop)) body['stop'] = plain(wish.stop);
  return Object.keys(body).length ? { intId: order.intId, accountId: order.accountId, ...body } : null;
}

/** Whether a changed order would still be on the grid. */
export function changeFindings(order: Order, wish: { quantity: Decimal; limit: Decimal; stop: Decimal }, security: Security): Finding[] {
  const filled = units(order.filledQuantity) ?? 0n;
  const wanted = units(wish.quantity);
  return [
    ...quantity(wish, security),
    ...(wanted !== null && wanted > 0n && wanted < filled
      ? [error('quantity', `Already filled: ${shown(order.filledQuantity)}`)]
      : []),
    ...(hasLimit(order.type) ? price('limit', wish.limit, security) : []),
    ...(hasStop(order.type) ? price('stop', wish.stop, security) : []),
  ];
}

function standing(draft: Draft, around: Surroundings, security: Security): Finding[] {
  const found: Finding[] = [];
  if (!security.tradeable) found.push(error('security', `${security.symbol} is not tradeable`));
  if (around.account && !around.account.active) found.push(error('account', `Account ${around.account.name} is not active`));
  const { strategy } = around;
  if (strategy && strategy.name !== 'SERVER' && strategy.phase !== 'RUNNING') {
    found.push(error('strategy', `${strategy.name} is in ${strategy.phase}, not RUNNING`));
  }
  if (around.risk?.killSwitch) found.push(error('order', 'The kill switch is on'));
  return found;
}

function quantity(draft: { quantity: Decimal }, security: Security): Finding[] {
  const qty = units(draft.quantity);
  if (qty === null || qty <= 0n) return [error('quantity', 'Above zero')];
  return isMultiple(qty, security.lotSize) ? [] : [error('quantity', `Multiples of ${shown(security.lotSize)}`)];
}

function price(field: 'limit' | 'stop', text: Decimal, security: Security): Finding[] {
  const exact = units(text);
  if (exact === null) return [error(field, `A ${field} price`)];
  if (exact <= 0n && security.type !== 'FUTURE') return [error(field, 'Above zero')];
  return isMultiple(exact, security.tickSize) ? [] : [error(field, `Multiples of ${shown(security.tickSize)}`)];
}

function expiry(draft: Draft, now: number): Finding[] {
  if (draft.tif !== 'GTD') return [];
  const until = Date.parse(draft.tifDate);
  if (Number.isNaN(until)) return [error('tifDate', 'Until when')];
  return until <= now ? [error('tifDate', 'Not in the past')] : [];
}

function risk(draft: Draft, around: Surroundings, security: Security): Finding[] {
  const { risk: rules } = around;
  if (!rules) return [];
  const mine = (row: { strategyName?: string; accountName?: string }): boolean =>
    row.strategyName === draft.strategyName || (row.accountName !== undefined && row.accountName === around.account?.name);
  const found = rules.limits.filter(mine).flatMap((limits) => limited(draft, around, limits));
  if (rules.restrictions.some((row) => row.securityId === security.id && mine(row))) {
    found.push(error('security', `${security.symbol} is restricted`));
  }
  return found;
}

function limited(draft: Draft, around: Surroundings, limits: Limits): Finding[] {
  const who = limits.strategyName ?? limits.accountName ?? '';
  const found: Finding[] = [];
  const above = (amount: bigint | null, most: Decimal): boolean => {
    const limit = units(most) ?? 0n;
    return limit > 0n && amount !== null && amount > limit;
  };
  const qty = units(draft.quantity);
  if (!limits.tradingEnabled) found.push(error('order', `Trading is off for ${who}`));
  if (above(qty, limits.maxOrderQty)) found.push(error('quantity', `At most ${shown(limits.maxOrderQty)} (${who})`));
  const cost = value(draft, around);
  if (above(cost === null ? null : units(cost), limits.maxOrderValue)) {
    found.push(error('order', `Value above ${shown(limits.maxOrderValue)} (${who})`));
  }
  if (limits.maxOpenOrders > 0 && around.openOrders >= limits.maxOpenOrders && limits.strategyName) {
    found.push(error('order', `${limits.maxOpenOrders} orders open already (${who})`));
  }
  const after = signedQuantity(around.position?.quantity, draft);
  if (limits.strategyName && above(after, limits.maxPosition)) {
    found.push(error('quantity', `Position above ${shown(limits.maxPosition)} (${who})`));
  }
  return [...found, ...collar(draft, around.tick, limits, who)];
}

/** How far a limit price may be from the last. */
function collar(draft: Draft, tick: Tick | undefined, limits: Limits, who: string): Finding[] {
  const [pct, last, limit] = [units(limits.priceCollarPct) ?? 0n, units(tick?.last), units(draft.limit)];
  if (!hasLimit(draft.type) || pct <= 0n || last === null || limit === null) return [];
  const away = limit > last ? limit - last : last - limit;
  return away * 100n > times(last < 0n ? -last : last, pct)
    ? [error('limit', `More than ${shown(limits.priceCollarPct)} % from last (${who})`)]
    : [];
}

/** Legal, and perhaps not meant. */
function manners(draft: Draft, tick: Tick | undefined): Finding[] {
  const [bid, ask, limit, stop] = [units(tick?.bid), units(tick?.ask), units(draft.limit), units(draft.stop)];
  const buys = draft.side === 'BUY';
  const found: Finding[] = [];
  if (draft.type === 'LIMIT' && limit !== null && (buys ? ask !== null && limit >= ask : bid !== null && limit <= bid)) {
    found.push(warning('limit', 'Crosses the market: fills at once'));
  }
  if (hasStop(draft.type) && stop !== null && (buys ? ask !== null && stop <= ask : bid !== null && stop >= bid)) {
    found.push(warning('stop', 'Already reached: triggers at once'));
  }
  if (!tick?.bid && !tick?.ask && draft.type === 'MARKET') found.push(warning('order', 'No quote: may find no market'));
  return found;
}

/** The size of the position after the order, without a sign. */
function signedQuantity(held: Decimal | undefined, draft: Draft): bigint | null {
  const qty = units(draft.quantity);
  if (qty === null) return null;
  const after = (units(held) ?? 0n) + (draft.side === 'BUY' ? qty : -qty);
  return after < 0n ? -after : after;
}

function expected(draft: Draft, tick: Tick | undefined): Decimal | undefined {
  if (hasLimit(draft.type)) return draft.limit;
  if (hasStop(draft.type)) return draft.stop;
  return (draft.side === 'BUY' ? tick?.ask : tick?.bid) ?? tick?.last;
}

/** Typed by hand, `+.50` say, as JSON wants it. */
function plain(text: Decimal): Decimal {
  const exact = units(text);
  return exact === null ? text : decimal(exact);
}

const error = (field: Field, text: string): Finding => ({ field, text, grave: true });
const warning = (field: Field, text: string): Finding => ({ field, text, grave: false });
