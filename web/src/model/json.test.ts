import { describe, expect, it } from 'vitest';

import { parseJson, writeJson } from './json';

describe('JSON', () => {
  it('keeps decimals as text', () => {
    const tick = parseJson(
      '{"type":"TICK","seq":12,"ts":1794646800123456789,"securityId":1,"bid":90071992.54740993,"bidSize":1e2}',
    );
    expect(tick).toEqual({
      type: 'TICK',
      seq: 12,
      ts: '1794646800123456789',
      securityId: 1,
      bid: '90071992.54740993',
      bidSize: '1e2',
    });
  });

  it('does not change numbers inside a text', () => {
    const text = String.raw`{"message":"they said \"price\":12.50, \"bid\" : 3","price" : -1.50,"list":[1,2.5,{"price":3}]}`;
    expect(parseJson(text)).toEqual({
      message: 'they said "price":12.50, "bid" : 3',
      price: '-1.50',
      list: [1, 2.5, { price: '3' }],
    });
  });

  it('keeps ids that a double cannot represent', () => {
    expect(parseJson('{"id":9007199254740993}')).toEqual({ id: '9007199254740993' });
    expect(parseJson('{"id":9007199254740991}')).toEqual({ id: 9007199254740991 });
  });

  it('writes decimals as numbers, digit by digit, and omits absent values', () => {
    expect(
      writeJson({ securityId: 1, quantity: '100', limit: '90071992.54740993', stop: '', intId: undefined, tif: 'DAY' }),
    ).toBe('{"securityId":1,"quantity":100,"limit":90071992.54740993,"tif":"DAY"}');
    // A value that is not a number is quoted, never written as raw JSON.
    expect(writeJson({ limit: '1,"side":"SELL"' })).toBe('{"limit":"1,\\"side\\":\\"SELL\\""}');
  });
});
