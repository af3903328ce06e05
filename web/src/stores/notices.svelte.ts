// Notices about the outcome of actions. A notice of success disappears by itself. A notice of a
// failure stays until the user has read and dismissed it.

import { isRefusal } from '../link/rest';

export interface Notice {
  id: number;
  tone: 'good' | 'bad';
  title: string;
  text: string;
  at: number;
}

/** Notices of success at once; more would hide the page. */
const GOOD_MAX = 3;
const GOOD_MS = 3_000;
/** Notices of failures kept. The oldest are counted and dropped, and the count stays visible. */
export const BAD_MAX = 50;

export class NoticeStore {
  /** Newest first. */
  good: Notice[] = $state.raw([]);
  bad: Notice[] = $state.raw([]);
  /** Failures that were dropped because there were too many. */
  dropped = $state(0);
  private next = 1;

  done(title: string, text = ''): void {
    const notice = this.notice('good', title, text);
    this.good = [notice, ...this.good].slice(0, GOOD_MAX);
    setTimeout(() => (this.good = this.good.filter((one) => one !== notice)), GOOD_MS);
  }

  /** Reports a failed call. Only a response of the service counts as a refusal. */
  failed(what: string, problem: unknown): void {
    const text = problem instanceof Error ? problem.message : String(problem);
    if (isRefusal(problem)) this.warn(`${what}: refused by the service`, text);
    else this.warn(`${what}: no response`, `${text}. It may have taken effect. Check before you repeat it.`);
  }

  warn(title: string, text: string): void {
    const all = [this.notice('bad', title, text), ...this.bad];
    this.dropped += Math.max(0, all.length - BAD_MAX);
    this.bad = all.slice(0, BAD_MAX);
  }

  dismiss(id: number): void {
    this.good = this.good.filter((notice) => notice.id !== id);
    this.bad = this.bad.filter((notice) => notice.id !== id);
    if (this.bad.length === 0) this.dropped = 0;
  }

  dismissAll(): void {
    this.good = [];
    this.bad = [];
    this.dropped = 0;
  }

  private notice(tone: Notice['tone'], title: string, text: string): Notice {
    return { id: this.next++, tone, title, text, at: Date.now() };
  }
}
