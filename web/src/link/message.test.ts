import { describe, expect, it } from 'vitest';

import { readMessage } from './message';

describe('readMessage', () => {
  const frame = 'MESSAGE\nsubscription:s1\nmessage-id:0-7\ndestination:/topic/tick.42\ncontent-length:9\n\n{"a":"é"}\0';

  it('reads a message like the library', () => {
    expect(readMessage(frame)).toEqual({ subscription: 's1', topic: 'tick.42', body: '{"a":"é"}' });
    expect(readMessage('MESSAGE\nsubscription:1\ndestination:/topic/a\n\n\0')).toEqual({
      subscription: '1',
      topic: 'a',
      body: '',
    });
  });

  it('uses the first of repeated headers, and no header from the body', () => {
    expect(readMessage('MESSAGE\nsubscription:1\nsubscription:2\ndestination:/topic/a\n\nx\0')?.subscription).toBe('1');
    expect(readMessage('MESSAGE\ndestination:/topic/a\n\nx\nsubscription:1\n\0')).toBeNull();
  });

  it('leaves all other data to the library', () => {
    const others = [
      '\n',
      'RECEIPT\nreceipt-id:1\n\n\0',
      frame + frame,
      `${frame}\n`,
      frame.slice(0, -1),
      frame.replace('tick', 'a\\cb'),
      frame.replaceAll('\n', '\r\n'),
      'MESSAGE\nsubscription:1\0',
      new ArrayBuffer(4),
      undefined,
    ];
    for (const other of others) expect(readMessage(other)).toBeNull();
  });
});
