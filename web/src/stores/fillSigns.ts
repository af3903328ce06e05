// Sound and desktop notes on fills, if the user switched them on. Fills that arrive together give
// one sign.

import { formatDecimal } from '../model/decimal';
import type { Transaction } from '../model/types';

/** Time in which fills are collected: an order that sweeps the book fills in many parts. */
export const COLLECT_MS = 300;
/** Symbols named in a note about several fills. */
const SYMBOLS_MAX = 5;
const SOUND_S = 0.12;
const BUY_HZ = 880;
const SELL_HZ = 587;

/** Ways to reach the user. */
export interface SignSinks {
  play: (side: 'BUY' | 'SELL') => void;
  note: (title: string, text: string) => void;
}

export class FillSigns {
  private fills: Transaction[] = [];
  private timer: ReturnType<typeof setTimeout> | undefined;

  constructor(
    private readonly wants: () => { sound: boolean; note: boolean; strategy: string },
    private readonly symbol: (securityId: number | undefined) => string,
    private readonly sinks: SignSinks = { play, note },
  ) {}

  handle(row: Transaction): void {
    const { sound, note, strategy } = this.wants();
    const isFill = row.type === 'BUY' || row.type === 'SELL';
    if (!isFill || !(sound || note) || (strategy !== '' && row.strategyName !== strategy)) return;
    this.fills.push(row);
    this.timer ??= setTimeout(() => this.give(), COLLECT_MS);
  }

  private give(): void {
    const { fills } = this;
    this.fills = [];
    this.timer = undefined;
    const last = fills.at(-1);
    if (!last) return;
    const { sound, note } = this.wants();
    if (sound) this.sinks.play(last.type === 'BUY' ? 'BUY' : 'SELL');
    if (note) this.sinks.note(...this.text(fills));
  }

  private text(fills: Transaction[]): [string, string] {
    const [first] = fills;
    if (first && fills.length === 1) {
      const what = `${first.type} ${formatDecimal(first.quantity)} ${this.symbol(first.securityId)}`;
      return [`Filled: ${what}`, `at ${formatDecimal(first.price)} ${first.currency}, ${first.strategyName ?? ''}`];
    }
    const symbols = [...new Set(fills.map((fill) => this.symbol(fill.securityId)))];
    const more = symbols.length > SYMBOLS_MAX ? ', …' : '';
    return [`${fills.length} fills`, symbols.slice(0, SYMBOLS_MAX).join(', ') + more];
  }
}

/** Asks the browser for the permission to show notes. Returns whether it was given. */
export async function permitNotes(): Promise<boolean> {
  return typeof Notification !== 'undefined' && (await Notification.requestPermission()) === 'granted';
}

function note(title: string, body: string): void {
  if (typeof Notification === 'undefined' || Notification.permission !== 'granted') return;
  // A later note replaces an earlier one, so that notes never pile up.
  new Notification(title, { body, tag: 'pitlane-fill', silent: true });
}

let audio: AudioContext | undefined;

/** Plays a short tone, higher for a purchase. */
function play(side: 'BUY' | 'SELL'): void {
  if (typeof AudioContext === 'undefined') return;
  audio ??= new AudioContext();
  const tone = audio.createOscillator();
  const volume = audio.createGain();
  tone.frequency.value = side === 'BUY' ? BUY_HZ : SELL_HZ;
  volume.gain.setValueAtTime(0.15, audio.currentTime);
  volume.gain.exponentialRampToValueAtTime(0.001, audio.currentTime + SOUND_S);
  tone.connect(volume).connect(audio.destination);
  tone.start();
  tone.stop(audio.currentTime + SOUND_S);
}
