// Topic patterns: `*` matches one segment, `>` at the end matches all remaining segments.

/** Returns the error of a pattern, or null. */
export function patternError(pattern: string): string | null {
  const segments = pattern.split('.');
  if (segments.some((segment) => segment === '')) return 'A segment is empty';
  if (segments.slice(0, -1).includes('>')) return '“>” is allowed only at the end';
  if (segments.some((segment) => segment.length > 1 && /[*>]/.test(segment)))
    return '“*” and “>” must be whole segments';
  return /[/\s]/.test(pattern.replace('the service', '')) ? 'Spaces and slashes are not allowed' : null;
}

export function matches(pattern: string, topic: string): boolean {
  const [wanted, given] = [pattern.split('.'), topic.split('.')];
  if (wanted.at(-1) === '>') {
    const above = wanted.slice(0, -1);
    return given.length >= above.length && above.every((segment, at) => segment === '*' || segment === given[at]);
  }
  return wanted.length === given.length && wanted.every((segment, at) => segment === '*' || segment === given[at]);
}

/** Patterns that the page suggests. */
export const SUGGESTED = [
  'tick.*',
  'book.*',
  'bar.>',
  'pitlane.>',
  'order.>',
  'position.>',
  'transaction.*',
  'cash-balance.>',
  'subscription.>',
  'session.*',
  'lifecycle.*',
  'log-event.*',
  'generic-event.*',
] as const;
