// Limits of strategies and accounts with their use, and changes of them.

import { type Decimal, compare, formatDecimal, isNegative, units } from './decimal';
import type { LimitRefusals, LimitUse, Limits, Risk } from './types';

/** One strategy or account. */
export interface RiskRow {
  kind: 'Strategy' | 'Account';
  name: string;
  limits: Limits;
  /** Absent until the service has told it, or if the login may not see it. */
  use: LimitUse | undefined;
  refused: number;
  /** The newest refusal. */
  newest: LimitRefusals | undefined;
}

/** Share of a limit from which its use is shown as high, in percent. */
const HIGH_PERCENT = 80n;

/** Returns a row for each strategy and account with limits, with its use. */
export function riskRows(risk: Risk | null, uses: readonly LimitUse[]): RiskRow[] {
  const keyOf = ({ strategyName, accountName }: Limits | LimitUse): string =>
    `${strategyName ?? ''}/${accountName ?? ''}`;
  const byKey = new Map(uses.map((use) => [keyOf(use), use]));
  return (risk?.limits ?? []).map((limits) => {
    const use = byKey.get(keyOf(limits));
    const refusals = use?.refusals ?? [];
    return {
      kind: limits.strategyName === undefined ? 'Account' : 'Strategy',
      name: limits.strategyName ?? limits.accountName ?? '',
      limits,
      use,
      refused: refusals.reduce((sum, { count }) => sum + count, 0),
      newest: refusals.reduce<LimitRefusals | undefined>(
        (newest, one) => (newest && newest.dateTime >= one.dateTime ? newest : one),
        undefined,
      ),
    };
  });
}

/** Formats a limit; zero means none. */
export const limitText = (limit: Decimal, unit = ''): string =>
  (units(limit) ?? 0n) === 0n ? 'no limit' : `${formatDecimal(limit)}${unit}`;

/** Formats the use of a limit, such as `12 of 1 000`; `places` rounds it. */
export function useText(used: Decimal | undefined, limit: Decimal, places?: number): string {
  if (used === undefined) return (units(limit) ?? 0n) === 0n ? 'no limit' : `of ${formatDecimal(limit)}`;
  const text = formatDecimal(used, places, places);
  return (units(limit) ?? 0n) === 0n ? text : `${text} of ${formatDecimal(limit)}`;
}

/** Returns whether shards have not told what they use of the credit of an account. */
export const isCreditUnknown = ({ use }: RiskRow): boolean => (use?.unansweredShards ?? []).length > 0;

/** Formats the credit in use; empty without a limit. */
export function creditText(row: RiskRow): string {
  const { credit, creditCurrency = '' } = row.limits;
  if (credit === undefined) return '';
  // The reserved fees have all digits, which an amount of money does not need.
  if (!isCreditUnknown(row)) return `${useText(row.use?.credit, credit, 2)} ${creditCurrency}`;
  return `? of ${formatDecimal(credit)} ${creditCurrency}: no answer from shard ${row.use!.unansweredShards!.join(', ')}`;
}

/** Returns whether a limit is reached (`down`), or nearly (`warn`). */
export function useTone(used: Decimal | undefined, limit: Decimal): 'down' | 'warn' | undefined {
  const [amount, most] = [units(used), units(limit) ?? 0n];
  if (amount === null || most <= 0n) return undefined;
  if (amount >= most) return 'down';
  return amount * 100n >= most * HIGH_PERCENT ? 'warn' : undefined;
}

/** The limits that the editor changes, with their labels. */
export const LIMIT_FIELDS = [
  { key: 'maxOrderQty', label: 'Largest order quantity', isWhole: false },
  { key: 'maxOrderValue', label: 'Largest order value', isWhole: false },
  { key: 'priceCollarPct', label: 'Price collar in %', isWhole: false },
  { key: 'maxPosition', label: 'Largest position', isWhole: false },
  { key: 'maxOpenOrders', label: 'Open orders', isWhole: true },
  { key: 'maxOrdersPerS', label: 'Orders per second', isWhole: true },
  { key: 'duplicateWindowMs', label: 'Duplicate window in ms', isWhole: true },
] as const;
export type LimitKey = (typeof LIMIT_FIELDS)[number]['key'];
/** `credit` and its currency are limits of accounts. */
export type LimitDraft = Record<LimitKey, Decimal> & {
  tradingEnabled: boolean;
  credit: Decimal;
  creditCurrency: string;
};

/** Returns the limits as the editor shows them. */
export function draftOf(limits: Limits): LimitDraft {
  const fields = LIMIT_FIELDS.map(({ key }) => [key, String(limits[key])] as const);
  const { tradingEnabled, credit = '0', creditCurrency = '' } = limits;
  return { ...(Object.fromEntries(fields) as Record<LimitKey, Decimal>), tradingEnabled, credit, creditCurrency };
}

/** Returns what is wrong with a limit; empty: nothing. */
export function limitFault(text: Decimal, isWhole: boolean): string {
  if (units(text) === null) return `“${text}” is not a number. Write it like 1234.5, or 0 for no limit`;
  if (isNegative(text)) return 'Must not be below zero';
  return isWhole && text.includes('.') ? 'Must be a whole number' : '';
}

/** Returns what is wrong with the currency of a credit; empty: nothing. */
export function currencyFault({ credit, creditCurrency }: LimitDraft): string {
  if (creditCurrency === '') return (units(credit) ?? 0n) === 0n ? '' : 'A credit needs its currency';
  return /^[A-Z0-9]{1,8}$/.test(creditCurrency) ? '' : 'Write a currency like USD';
}

/** Returns the request that changes the limits; null if nothing differs. */
export function limitChanges(limits: Limits, draft: LimitDraft): Record<string, unknown> | null {
  const before = draftOf(limits);
  const changed = LIMIT_FIELDS.filter(({ key }) => compare(before[key], draft[key]) !== 0);
  const body: Record<string, unknown> = Object.fromEntries(
    changed.map(({ key, isWhole }) => [key, isWhole ? Number(draft[key]) : draft[key]]),
  );
  if (draft.tradingEnabled !== limits.tradingEnabled) body['tradingEnabled'] = draft.tradingEnabled;
  const { strategyName, accountName } = limits;
  const hasCredit = compare(before.credit, draft.credit) !== 0 || before.creditCurrency !== draft.creditCurrency;
  if (accountName !== undefined && hasCredit) {
    body['credit'] = draft.credit;
    if (draft.creditCurrency !== '') body['creditCurrency'] = draft.creditCurrency;
  }
  if (Object.keys(body).length === 0) return null;
  return { ...(strategyName === undefined ? { accountName } : { strategyName }), ...body };
}
