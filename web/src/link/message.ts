// A fast decoder of STOMP MESSAGE frames. The service sends each frame as one WebSocket message,
// and the page needs three parts of it. The library reads a frame byte by byte, which takes most of
// the page's CPU time in a busy market.

export interface Message {
  subscription: string;
  topic: string;
  body: string;
}

const START = 'MESSAGE\n';
const SUBSCRIPTION = '\nsubscription:';
const DESTINATION = '\ndestination:/topic/';

/**
 * Returns null for all data but one complete MESSAGE with unescaped headers. The library handles
 * the rest.
 */
export function readMessage(data: unknown): Message | null {
  if (typeof data !== 'string' || !data.startsWith(START) || data.indexOf('\0') !== data.length - 1) return null;
  const end = data.indexOf('\n\n');
  if (end < 0) return null;
  const head = data.slice(0, end + 1);
  // Escapes, or the line ends of older protocol versions.
  if (head.includes('\\') || head.includes('\r')) return null;
  const subscription = valueOf(head, SUBSCRIPTION);
  const topic = valueOf(head, DESTINATION);
  return subscription === null || topic === null ? null : { subscription, topic, body: data.slice(end + 2, -1) };
}

/** Returns the value of the first header with the name; STOMP ignores repeated headers. */
function valueOf(head: string, name: string): string | null {
  const start = head.indexOf(name);
  return start < 0 ? null : head.slice(start + name.length, head.indexOf('\n', start + 1));
}
