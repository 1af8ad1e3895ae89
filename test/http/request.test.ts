/** `X-Forwarded-For` counts only from configured proxies. */
import type { IncomingMessage } from 'node:http';
import { expect, test } from 'vitest';
import { addressReader } from '../../src/http/request.ts';

const from = (remoteAddress: string, forwarded?: string): IncomingMessage =>
  ({
    socket: { remoteAddress },
    headers: forwarded === undefined ? {} : { 'x-forwarded-for': forwarded },
  }) as unknown as IncomingMessage;

test.each([
  // proxies, peer, header, the client
  [[], '198.51.100.7', undefined, '198.51.100.7'],
  [[], '127.0.0.1', '203.0.113.9', '127.0.0.1'],
  [['10.0.0.0/8'], '198.51.100.7', '203.0.113.9', '198.51.100.7'],
  [['10.0.0.0/8'], '10.1.2.3', '203.0.113.9', '203.0.113.9'],
  [['10.0.0.0/8'], '::ffff:10.1.2.3', '203.0.113.9', '203.0.113.9'],
  [['10.0.0.0/8'], '10.1.2.3', undefined, '10.1.2.3'],
  [['10.0.0.0/8'], '10.1.2.3', '1.1.1.1, 203.0.113.9', '203.0.113.9'],
  [['10.0.0.0/8'], '10.1.2.3', '1.1.1.1, 203.0.113.9, 10.9.9.9', '203.0.113.9'],
  [['10.0.0.0/8'], '10.1.2.3', '10.0.0.5, 10.9.9.9', '10.0.0.5'],
  [['10.0.0.0/8'], '10.1.2.3', 'nonsense', '10.1.2.3'],
  [['10.0.0.0/8'], '10.1.2.3', '203.0.113.9, ', '203.0.113.9'],
  [['2001:db8::/32', '127.0.0.1'], '2001:db8::1', '2001:db9::5', '2001:db9::5'],
  [['127.0.0.1'], '127.0.0.1', '::ffff:203.0.113.9', '203.0.113.9'],
] as const)(
  'the client behind %j, with the peer %s and the header %j, has the address %s',
  (proxies, peer, header, expected) => {
    expect(addressReader(proxies)(from(peer, header))).toBe(expected);
  },
);
