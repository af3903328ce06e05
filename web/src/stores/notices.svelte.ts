// Short notices about the outcome of actions.

export interface Notice {
  id: number;
  tone: 'good' | 'bad' | 'plain';
  title: string;
  text: string;
}

/** Notices shown at once; more would hide the page. */
const SHOWN_MAX = 4;
const GOOD_MS = 3_000;
const BAD_MS = 9_000;

export class NoticeStore {
  shown: Notice[] = $state.raw([]);
  private next = 1;

  good(title: string, text = ''): void {
    this.show('good', title, text, GOOD_MS);
  }

  /** Reports a failed call. */
  bad(title: string, problem: unknown): void {
    this.show('bad', title, problem instanceof Error ? problem.message : String(problem), BAD_MS);
  }

  dismiss(id: number): void {
    this.shown = this.shown.filter((notice) => notice.id !== id);
  }

  private show(tone: Notice['tone'], title: string, text: string, ms: number): void {
    const notice = { id: this.next++, tone, title, text };
    this.shown = [...this.shown, notice].slice(-SHOWN_MAX);
    setTimeout(() => this.dismiss(notice.id), ms);
  }
}
