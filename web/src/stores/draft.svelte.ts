// The order being written, and what stands around it.

import { decimal, units } from '../model/decimal';
import { type Draft, type Finding, type Surroundings, findings, hasLimit, hasStop, request, value } from '../model/ticket';
import type { Decimal } from '../model/decimal';
import type { Side } from '../model/types';
import type { Desk } from './desk.svelte';

export class DraftStore {
  draft: Draft = $state({
    securityId: null, type: 'LIMIT', side: 'BUY', quantity: '', limit: '', stop: '', tif: 'DAY', tifDate: '',
    strategyName: 'SERVER', accountId: null, exchangeOrder: false,
  });
  busy = $state(false);
  /** Rises when somebody wants the cursor in a field; the ticket looks. */
  focus: { field: 'quantity' | 'limit'; turn: number } = $state.raw({ field: 'quantity', turn: 0 });

  constructor(private readonly desk: Desk) {
    const { ticket } = desk.settings.kept;
    Object.assign(this.draft, ticket);
  }

  readonly around: Surroundings = $derived.by(() => {
    const { desk, draft } = this;
    const security = desk.reference.security(draft.securityId);
    return {
      security,
      tick: desk.market.quote(draft.securityId)?.tick,
      account: desk.reference.account(draft.accountId),
      strategy: desk.strategies.named(draft.strategyName),
      position: desk.positions.of(draft.strategyName, draft.securityId),
      risk: desk.service.risk && { ...desk.service.risk, killSwitch: desk.service.isKilled },
      openOrders: desk.orders.open.filter((order) => order.strategyName === draft.strategyName).length,
      now: Date.now(),
    };
  });

  readonly findings: Finding[] = $derived(findings(this.draft, this.around));
  readonly isGood: boolean = $derived(!this.findings.some((finding) => finding.grave));
  readonly value: Decimal | null = $derived(value(this.draft, this.around));

  /** Another security: prices of the old one are not left standing. */
  look(securityId: number | null): void {
    if (securityId === this.draft.securityId) return;
    Object.assign(this.draft, { securityId, limit: '', stop: '', accountId: null });
  }

  /** A price was pointed at, in the ladder or the list. */
  point(price: Decimal, side?: Side): void {
    const { draft } = this;
    if (side) draft.side = side;
    if (draft.type === 'MARKET') draft.type = 'LIMIT';
    const plain = decimal(units(price) ?? 0n);
    if (hasLimit(draft.type)) draft.limit = plain;
    if (draft.type === 'STOP' && hasStop(draft.type)) draft.stop = plain;
    this.want('quantity');
  }

  want(field: 'quantity' | 'limit'): void {
    this.focus = { field, turn: this.focus.turn + 1 };
  }

  async send(): Promise<boolean> {
    if (!this.isGood || this.busy) return false;
    const { desk } = this;
    const draft = $state.snapshot(this.draft);
    const what = `${draft.side} ${draft.quantity} ${desk.reference.symbol(draft.securityId ?? undefined)}`;
    this.busy = true;
    try {
      const id = await desk.orders.submit(draft.type, request(draft));
      desk.notices.good(`${what} sent`, id);
      return true;
    } catch (problem) {
      desk.notices.bad(`${what} refused`, problem);
      return false;
    } finally {
      this.busy = false;
    }
  }
}
