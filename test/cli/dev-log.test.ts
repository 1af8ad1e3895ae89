import { expect, test } from 'vitest';
import { devLogLine } from '../../src/cli/dev/dev-log.ts';

const paint = (style: unknown, text: string): string => `<${style}>${text}</>`;
const line = (entry: object): string =>
  devLogLine(JSON.stringify({ level: 'info', time: '2026-11-22T02:08:05.614Z', pid: 1, ...entry }), paint);
const REQUEST = { msg: 'request', request_id: 'r', method: 'GET', ms: 5.3, address: '127.0.0.1' };

test.each([
  [
    { ...REQUEST, path: '/api/posts', status: 200, user: 'u' },
    '<gray>02:08:05</> <green>200</> <bold>GET   </> /api/posts <gray>5.3 ms user u</>',
  ],
  [{ ...REQUEST, path: '/x', status: 404 }, '<gray>02:08:05</> <yellow>404</> <bold>GET   </> /x <gray>5.3 ms</>'],
  [{ ...REQUEST, path: '/x', status: 500 }, '<gray>02:08:05</> <red>500</> <bold>GET   </> /x <gray>5.3 ms</>'],
  [{ msg: 'serving', took_ms: 9 }, '<gray>02:08:05</> <green>info </> serving<gray> took_ms=9</>'],
  [{ level: 'error', msg: 'errors', text: 'one\ntwo\n' }, '<gray>02:08:05</> <red>error</> errors\n    one\n    two'],
  // Input of a client cannot control the terminal.
  [
    { ...REQUEST, path: '/\u001b[2J\u0007\n\u009b\u202e', status: 404 },
    '<gray>02:08:05</> <yellow>404</> <bold>GET   </> /\\u001b[2J\\u0007\\u000a\\u009b\\u202e <gray>5.3 ms</>',
  ],
  [{ msg: 'mail', text: '\u001b[2J\none' }, '<gray>02:08:05</> <green>info </> mail\n    \\u001b[2J\n    one'],
])('%j', (entry, expected) => {
  expect(line(entry)).toBe(expected);
});
