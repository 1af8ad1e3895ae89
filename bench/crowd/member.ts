/** An ordinary member, who asks for seven things once a second each, and a probe of `/healthz`; what they got and how long it took. */
import { documentId, type Person } from './world.ts';

export interface Asked {
  readonly kind: string;
  /** 0: no answer. */
  readonly status: number;
  readonly ms: number;
}

interface Wish {
  readonly kind: string;
  readonly method?: string;
  readonly path: string;
  readonly body?: unknown;
  readonly status: number;
  /** Without a token. */
  readonly isSignIn?: boolean;
}

const PERIOD_MS = 1_000;
const HEALTH_PERIOD_MS = 100;
/** A request that takes longer has failed. */
const MOST_MS = 30_000;

const wishesOf = ({ email, password }: Person): readonly Wish[] => [
  { kind: 'read', path: `/api/documents/${documentId(50)}`, status: 200 },
  { kind: 'list', path: '/api/documents?limit=20', status: 200 },
  {
    kind: 'query',
    method: 'POST',
    path: '/api/documents/query',
    body: { filter: 'score > 50', limit: 20 },
    status: 200,
  },
  {
    kind: 'aggregate',
    method: 'POST',
    path: '/api/memberships/aggregate',
    body: { group_by: ['role'], measures: { n: 'count' } },
    status: 200,
  },
  { kind: 'create', method: 'POST', path: '/api/documents', body: { data: { title: 'mine' } }, status: 201 },
  {
    kind: 'patch',
    method: 'PATCH',
    path: `/api/documents/${documentId(150)}`,
    body: { data: { score: 5 } },
    status: 200,
  },
  { kind: 'sign-in', method: 'POST', path: '/api/auth/login', body: { email, password }, status: 200, isSignIn: true },
];

export class Member {
  readonly #url: string;
  readonly #person: Person;
  readonly #asked: Asked[] = [];
  readonly #running: Promise<unknown>[];
  #isStopping = false;

  constructor(url: string, person: Person) {
    this.#url = url;
    this.#person = person;
    const wishes = wishesOf(person);
    this.#running = wishes.map((wish, i) =>
      this.#keepAsking(wish, { delay: (i * PERIOD_MS) / wishes.length, period: PERIOD_MS }),
    );
    const health = { kind: 'healthz', path: '/healthz', status: 200, isSignIn: true };
    this.#running.push(this.#keepAsking(health, { delay: 0, period: HEALTH_PERIOD_MS }));
  }

  /** What failed has the status that it got, or 0. */
  async stop(): Promise<readonly Asked[]> {
    this.#isStopping = true;
    await Promise.all(this.#running);
    return this.#asked;
  }

  async #keepAsking(wish: Wish, { delay, period }: { readonly delay: number; readonly period: number }): Promise<void> {
    await pause(delay);
    while (!this.#isStopping) {
      const since = performance.now();
      const status = await this.#ask(wish);
      const ms = performance.now() - since;
      this.#asked.push({ kind: wish.kind, status: status === wish.status ? 200 : status, ms });
      await pause(Math.max(0, period - ms));
    }
  }

  async #ask({ method = 'GET', path, body, isSignIn = false }: Wish): Promise<number> {
    const headers = {
      ...(isSignIn ? {} : { authorization: `Bearer ${this.#person.token}` }),
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
    };
    const sent = body === undefined ? {} : { body: JSON.stringify(body) };
    try {
      const answer = await fetch(this.#url + path, { method, headers, ...sent, signal: AbortSignal.timeout(MOST_MS) });
      await answer.arrayBuffer();
      return answer.status;
    } catch {
      return 0;
    }
  }
}

export const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));
