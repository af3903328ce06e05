// A question before an action that a slip of the hand could start.

export interface Question {
  title: string;
  text: string;
  /** Label of the button that starts the action. */
  action: string;
  /** Whether the user cannot switch the question off. */
  isAlways?: boolean;
}

export class ConfirmStore {
  question: Question | null = $state.raw(null);
  private answer: (isConfirmed: boolean) => void = () => {};

  /** Asks the user. A new question answers an open one with no. */
  ask(question: Question): Promise<boolean> {
    this.answer(false);
    this.question = question;
    return new Promise((done) => (this.answer = done));
  }

  reply(isConfirmed: boolean): void {
    this.question = null;
    this.answer(isConfirmed);
    this.answer = () => {};
  }
}
