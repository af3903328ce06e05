// A MESSAGE frame of STOMP, read as text in one go. The service sends each frame as one WebSocket message, of which three things
// are wanted; the library would walk through it octet by octet, which in a busy market is most of what the page computes.

export interface Message {
  subscription: string;
  topic: string;
  body: string;
}

const START = 'MESSAGE\n';
const SUBSCRIPTION = '\nsubscription:';
const DESTINATION = '\ndestination:/topic/';

/** Null for everything but one whole message with plain headers: the library knows what to do with that. */
export function readMessage(data: unknown): Message | null {
  if (typeof data !== 'string' || !data.startsWith(START) || data.indexOf('\0') !== data.length - 1) return null;
  const end = data.indexOf('\n\n');
  if (end < 0) return null;
  const head = data.slice(0, end + 1);
  // An escaped octet, or lines as older versions of the protocol may end them.
  if (head.includes('\\') || head.includes('\r')) return null;
  const subscription = valueOf(head, SUBSCRIPTION);
  const topic = valueOf(head, DESTINATION);
  return subscription === null || topic === null ? null : { subscription, topic, body: data.slice(end + 2, -1) };
}

/** Of the first header of the name, which is the one that counts. */
function valueOf(head: string, name: string): string | null {
  const start = head.indexOf(name);
  return start < 0 ? null : head.slice(start + name.length, head.indexOf('\n', start + 1));
}
