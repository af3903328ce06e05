// The order in the order form, and the data for its checks.

import { decimal, units } from '../model/decimal';
import {
  type Draft,
  type Finding,
  type LimitShare,
  type OrderContext,
  changedShare,
  findings,
  hasLimit,
  hasStop,
  largestShare,
  request,
  value,
} from '../model/ticket';
import type { Decimal } from '../model/decimal';
import type { Order, Side } from '../model/types';
import type { AppStore } from './app.svelte';
import { isTurnedDown } from './orders.svelte';

export class DraftStore {
  draft: Draft = $state({
    securityId: null,
    type: 'LIMIT',
    side: 'BUY',
    quantity: '',
    limit: '',
    stop: '',
    tif: 'DAY',
    tifDate: '',
    strategyName: 'SERVER',
    accountId: null,
    exchangeOrder: false,
  });
  busy = $state(false);
  /** Focus request for the order form; `count` increases with each request. */
  focus: { field: 'quantity' | 'limit'; count: number } = $state.raw({ field: 'quantity', count: 0 });

  constructor(private readonly app: AppStore) {
    const { ticket } = app.settings.saved;
    Object.assign(this.draft, ticket);
  }

  /** Apart from the context, which changes with each tick, because there may be 10,000 orders. */
  private readonly openOrders: number = $derived.by(
    () => this.app.orders.open.filter((order) => order.strategyName === this.draft.strategyName).length,
  );
  readonly context: OrderContext = $derived.by(() => {
    const { app, draft } = this;
    const security = app.reference.security(draft.securityId);
    return {
      security,
      tick: app.market.selectedTick,
      account: app.reference.account(draft.accountId),
      strategy: app.strategies.named(draft.strategyName),
      position: app.positions.of(draft.strategyName, draft.securityId),
      risk: app.service.risk && { ...app.service.risk, killSwitch: app.service.isKilled },
      openOrders: this.openOrders,
      now: Date.now(),
    };
  });

  readonly findings: Finding[] = $derived(findings(this.draft, this.context));
  readonly isValid: boolean = $derived(!this.findings.some((finding) => finding.isError));
  readonly value: Decimal | null = $derived(value(this.draft, this.context));
  /** The limit of which the order uses more than the user wants to send without a question. */
  readonly largeShare: LimitShare | null = $derived.by(() => this.asked(largestShare(this.draft, this.context)));

  /** The same for a modification of an open order; null if it uses no more than before. */
  largeChange(order: Order, changes: { quantity: Decimal; limit: Decimal; stop: Decimal }): LimitShare | null {
    const { app } = this;
    const context = {
      security: app.reference.security(order.securityId),
      tick: app.market.quote(order.securityId)?.tick,
      account: app.reference.account(order.accountId),
      strategy: app.strategies.named(order.strategyName ?? ''),
      position: app.positions.of(order.strategyName ?? '', order.securityId),
      risk: app.service.risk,
      openOrders: 0,
      now: Date.now(),
    };
    return this.asked(changedShare(order, changes, context));
  }

  /** Selects a security and clears the prices of the previous one. */
  selectSecurity(securityId: number | null): void {
    if (securityId === this.draft.securityId) return;
    Object.assign(this.draft, { securityId, limit: '', stop: '', accountId: null });
  }

  /** Sets the price that the user clicked, in the ladder or the order form. */
  setPrice(price: Decimal, side?: Side): void {
    const { draft } = this;
    if (side) draft.side = side;
    if (draft.type === 'MARKET') draft.type = 'LIMIT';
    const plain = decimal(units(price) ?? 0n);
    if (hasLimit(draft.type)) draft.limit = plain;
    if (draft.type === 'STOP' && hasStop(draft.type)) draft.stop = plain;
    this.requestFocus('quantity');
  }

  requestFocus(field: 'quantity' | 'limit'): void {
    this.focus = { field, count: this.focus.count + 1 };
  }

  async send(): Promise<boolean> {
    if (!this.isValid || this.busy) return false;
    const { app } = this;
    const draft = $state.snapshot(this.draft);
    const what = `${draft.side} ${draft.quantity} ${app.reference.symbol(draft.securityId ?? undefined)}`;
    this.busy = true;
    try {
      const order = await app.orders.submit(draft.type, request(draft));
      // An order that was turned down at once has a notice that stays.
      if (!order || !isTurnedDown(order)) app.notices.done(`${what}: sent`, order?.intId);
      return true;
    } catch (problem) {
      app.notices.failed(what, problem);
      return false;
    } finally {
      this.busy = false;
    }
  }

  /** Returns a share from which the user wants to be asked. */
  private asked(share: LimitShare | null): LimitShare | null {
    return share && share.percent >= this.app.settings.saved.largeShare ? share : null;
  }
}
