// @module-tag long
/** L6, L9, L10: whom a rate limit counts, and that it cannot be used to lock another user out. */
import { describe, expect, test } from 'vitest';
import type { PasswordPool } from '../../../src/auth/accounts/passwords.ts';
import { networkOf } from '../../../src/auth/limits/network.ts';
import { QueuePerKey } from '../../../src/queue-per-key.ts';
import { cheapPasswords, describeOnOne, type TestService } from '../../support/service.ts';
import { codeOf, login, newEmail, PASSWORD, SCHEMA } from '../people.ts';

describe('L6: the network that an address counts for', () => {
  test.each([
    ['IPv4', '192.0.2.7', '192.0.2.7'],
    ['no address', undefined, 'unknown'],
    ['IPv6', '2001:db8:1:2:3:4:5:6', '2001:db8:1:2::/64'],
    ['zeros left out behind the network', '2001:db8::1', '2001:db8:0:0::/64'],
    ['zeros left out elsewhere, the same network', '2001:db8:0:0:1::', '2001:db8:0:0::/64'],
    ['zeros left out inside the network', '2001:0:0:7::1', '2001:0:0:7::/64'],
    ['its neighbour', '2001:0:0:8::1', '2001:0:0:8::/64'],
    ['upper case and leading zeros', '2001:0DB8:0001:0002::1', '2001:db8:1:2::/64'],
    ['a zone', 'fe80::1%eth0', 'fe80:0:0:0::/64'],
    ['the loopback', '::1', '0:0:0:0::/64'],
    ['mapped IPv4, dotted', '::ffff:1.2.3.4', '1.2.3.4'],
    ['mapped IPv4, hexadecimal', '::ffff:102:304', '1.2.3.4'],
    ['NAT64', '64:ff9b::c000:207', '192.0.2.7'],
    ['NAT64 of another network', '64:ff9b::c000:208', '192.0.2.8'],
  ])('%s: %s', (_, address, network) => {
    expect(networkOf(address)).toBe(network);
  });
});

describe('L10: queues', () => {
  const gate = () => Promise.withResolvers<void>();
  const full = () => new Error('full');

  test('a queue of one key does not hold up another, also when a task fails', async () => {
    const queues = new QueuePerKey({ running: 1, waiting: 0 }, full);
    const first = gate();
    const failing = queues.run('a', () => first.promise.then(() => Promise.reject(new Error('a task'))));
    await expect(queues.run('a', async () => {})).rejects.toThrow('full');
    expect(await queues.run('b', async () => 'through')).toBe('through');
    first.resolve();
    await expect(failing).rejects.toThrow('a task');
    expect(await queues.run('a', async () => 'again')).toBe('again');
  });
});

const cheap = cheapPasswords();
let running = 0;
let most = 0;
/** Slow enough for a flood to pile up, and counts what is under way. */
const slow: PasswordPool = {
  hash: (password) => cheap.hash(password),
  async verify(password, stored) {
    most = Math.max(most, ++running);
    await new Promise((resolve) => setTimeout(resolve, 20));
    running--;
    return cheap.verify(password, stored);
  },
};
const OPTIONS = {
  schema: `${SCHEMA.replace(/roles:/, 'proxies: [127.0.0.1]\nroles:')}
limits: { login_account: 10 in 15m, login_address: 50 in 15m, register: 4 in 15m, reset: 4 in 15m }
`,
  env: { BYLAW_RATE_LIMIT: 'on' },
  passwords: slow,
};
let last = 0;
const somewhere = (): string => `10.9.${++last >> 8}.${last & 255}`;
const from = (service: TestService, address: string) => service.anonymous.with({ 'X-Forwarded-For': address });
const LIMIT = '429 rate_limited';

describeOnOne(
  'limits of strangers',
  (service) => {
    const person = async () => {
      const email = newEmail();
      await service.app.auth.admin.addUser({ email, password: PASSWORD, roles: ['member'] });
      return email;
    };

    test('L10: one address has four of 150 logins under way, and an owner elsewhere gets in among them', async () => {
      const email = await person();
      const attack = from(service, somewhere());
      most = 0;
      const flood = Array.from({ length: 150 }, async () =>
        codeOf(await attack.post('/api/auth/login', { email: newEmail('guess'), password: 'wrong password' })),
      );
      await login(from(service, somewhere()), email);
      const answered = await Promise.all(flood);
      expect(answered.filter((code) => code === '401 invalid_credentials')).toHaveLength(50);
      expect(answered.filter((code) => code === LIMIT)).toHaveLength(100);
      expect(most).toBeLessThanOrEqual(5);
    });

    const askFor = async (email: string, address: string) =>
      codeOf(await from(service, address).post('/api/auth/password/reset/request', { email }));

    test('L9: a stranger who asks for resets of an account does not keep its owner from asking', async () => {
      const email = await person();
      const stranger = somewhere();
      for (let i = 0; i < 4; i++) expect(await askFor(email, stranger)).toBe('202 undefined');
      expect(await askFor(email, stranger)).toBe(LIMIT);
      // From an address that the account never came from.
      expect(await askFor(email, somewhere())).toBe('202 undefined');
    });

    test('L9: registrations of one address have one limit for all networks', async () => {
      const email = newEmail();
      const codes: string[] = [];
      for (let i = 0; i < 6; i++) {
        const answer = await from(service, somewhere()).post('/api/auth/register', { email, password: PASSWORD });
        codes.push(codeOf(answer));
      }
      expect(codes).toEqual(['201 undefined', ...Array(3).fill('409 email_taken'), LIMIT, LIMIT]);
    });
  },
  OPTIONS,
);
