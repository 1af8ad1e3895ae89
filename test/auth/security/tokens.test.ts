/** L5: a token has more than one text, and all of them end with its session. */
import { describe, expect, test } from 'vitest';
import { BoundedMap } from '../../../src/bounded-map.ts';
import { describeOnOne } from '../../support/service.ts';
import { codeOf, newPerson, SCHEMA } from '../people.ts';

/** The order of P-256 (FIPS 186-4 D.1.2.3). */
const ORDER = 0xffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551n;

/** The same signature as (r, n − s). */
function twinOf(token: string): string {
  const [header, payload, signature] = token.split('.') as [string, string, string];
  const bytes = Buffer.from(signature, 'base64url');
  const s = ORDER - BigInt(`0x${bytes.subarray(32).toString('hex')}`);
  const twin = Buffer.concat([bytes.subarray(0, 32), Buffer.from(s.toString(16).padStart(64, '0'), 'hex')]);
  return `${header}.${payload}.${twin.toString('base64url')}`;
}

describeOnOne(
  'L5: malleable signatures',
  (service) => {
    test('the twin of a token names the same session, and a logout ends both', async () => {
      const { access, client } = await newPerson(service.anonymous);
      const twin = twinOf(access);
      expect(twin).not.toBe(access);
      const me = (token: string) => service.anonymous.get('/api/auth/me', { Authorization: `Bearer ${token}` });
      expect([(await me(access)).status, (await me(twin)).status]).toEqual([200, 200]);
      expect((await client.post('/api/auth/logout')).status).toBe(204);
      expect([codeOf(await me(access)), codeOf(await me(twin))]).toEqual(['401 invalid_token', '401 invalid_token']);
    });
  },
  { schema: SCHEMA },
);

describe('a bounded map', () => {
  test('a bounded map drops the least recently used entry, and returns it', () => {
    const map = new BoundedMap<string, number>(2);
    map.set('hot', 1);
    map.set('cold', 2);
    expect(map.get('hot')).toBe(1);
    expect(map.set('new', 3)).toBe(2);
    expect([...map.entries()]).toEqual([
      ['hot', 1],
      ['new', 3],
    ]);
    expect(map.set('hot', 4)).toBeUndefined();
    expect([...map.entries()].at(-1)).toEqual(['hot', 4]);
  });
});
