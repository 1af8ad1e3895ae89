/** A listener over a connection that is slow, or lost. */
import { setImmediate as turn } from 'node:timers/promises';
import pg from 'pg';
import { afterEach, beforeEach, describe, expect, inject, it, vi } from 'vitest';
import { Listener } from '../../src/database/listener.ts';
import { SilentProxy } from '../support/postgres/silent-proxy.ts';
import { until } from '../support/until.ts';

const url = inject('postgresUrl');
const CHANNEL = 'of_listener_tests';

describe.skipIf(url === '')('a listener', () => {
  let proxy: SilentProxy;
  let listener: Listener;
  let heard: string[];
  let states: boolean[];

  beforeEach(async () => {
    [heard, states] = [[], []];
    proxy = await SilentProxy.open(url);
  });
  afterEach(async () => {
    vi.useRealTimers();
    await listener.close();
    await proxy.close();
  });

  async function listen(connectionString: string): Promise<void> {
    listener = new Listener({ connectionString });
    await listener.listen({
      channel: CHANNEL,
      onMessage: (payload) => heard.push(payload),
      onState: (isUp) => states.push(isUp),
    });
  }

  async function send(payload: string): Promise<void> {
    const client = new pg.Client({ connectionString: url });
    await client.connect();
    await client.query('SELECT pg_notify($1, $2)', [CHANNEL, payload]);
    await client.end();
  }

  it('a listener delivers earlier notifications before a drain resolves', async () => {
    await listen(url);
    await send('one');
    await listener.drainAnnouncements();
    expect([heard, states]).toEqual([['one'], [true]]);
  });

  it('a listener keeps a connection whose answer is late, and does not wait for the same answer again', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    await listen(proxy.url);
    const release = proxy.hold();
    const both = Promise.allSettled([listener.drainAnnouncements(), turn().then(() => listener.drainAnnouncements())]);
    await turn();
    await turn();
    await vi.advanceTimersByTimeAsync(1_000);
    expect((await both).map(({ status }) => status)).toEqual(['rejected', 'rejected']);
    await expect(listener.drainAnnouncements()).rejects.toThrow('no notifications are heard');
    vi.useRealTimers();
    await send('meanwhile');
    expect(heard).toEqual([]);
    release();
    await until('it is heard', async () => heard.length === 1);
    await until('rounds work again', () =>
      listener.drainAnnouncements().then(
        () => true,
        () => false,
      ),
    );
    expect([heard, states]).toEqual([['meanwhile'], [true]]);
  });

  it('a stalled process reads the received answers before a drain gives up', async () => {
    await listen(url);
    const round = listener.drainAnnouncements();
    await turn();
    const end = performance.now() + 1_100;
    while (performance.now() < end);
    await round;
    expect(states).toEqual([true]);
  });

  it('a heartbeat without an answer gives a silent connection up, and the listener connects again', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    await listen(proxy.url);
    expect(proxy.silence()).toBe(1);
    await vi.advanceTimersByTimeAsync(5_000);
    await vi.advanceTimersByTimeAsync(4_900);
    expect(states).toEqual([true]);
    await vi.advanceTimersByTimeAsync(200);
    await turn();
    expect(states).toEqual([true, false]);
    await vi.advanceTimersByTimeAsync(200);
    vi.useRealTimers();
    await until('it hears again', async () => states.length === 3);
    await send('after');
    await listener.drainAnnouncements();
    expect([heard, states]).toEqual([['after'], [true, false, true]]);
  });
});
