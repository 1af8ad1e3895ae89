/**
 * What one member did to stop the others, as data: requests that the rules allow. Source: a security review of an earlier version, whose
 * numbers (N1 …) the names carry.
 */
import { call } from '../movies/client.ts';
import type { LoadRequest } from '../support/load.ts';
import { documentId, type Person } from './world.ts';

export interface Attack {
  readonly name: string;
  /** Requests at a time. */
  readonly loops: number;
  /** Each loop sends one request, all at once, and ends. */
  readonly isBurst?: boolean;
  /** Returns the request of all loops. */
  readonly prepare: (url: string, attacker: Person) => Promise<Prepared> | Prepared;
}
export interface Prepared extends LoadRequest {
  readonly headers?: Readonly<Record<string, string>>;
  /** The body as it is sent, where it is not `body` as JSON. */
  readonly text?: string;
}

const post = (path: string, body: unknown): Prepared => ({ method: 'POST', path, body });

async function made(url: string, { token }: Person, collection: string, data: unknown): Promise<string> {
  const { status, body } = await call(`${url}/api/${collection}`, { method: 'POST', token, body: { data } });
  if (status !== 201) throw new Error(`${collection}: ${status} ${JSON.stringify(body)}`);
  return body.data.id;
}

let teams = 0;

/** A hundred documents of one team, each of which names all the others when it expands the team. */
const expandsThatComeBack =
  (bytes: number): Attack['prepare'] =>
  async (url, attacker) => {
    const team = await made(url, attacker, 'teams', { name: `team ${++teams}` });
    await made(url, attacker, 'memberships', { team, user: attacker.id, role: 'owner' });
    const data = { title: 'e', team, body: 'x'.repeat(bytes) };
    // Twenty of them are within the limit of a body only where it allows so much.
    for (let i = 0; i < 100; i++) await made(url, attacker, 'documents', data);
    return post('/api/documents/query', {
      filter: 'team = $t',
      params: { t: team },
      limit: 100,
      expand: { team: { expand: { documents: { limit: 100 } } } },
    });
  };

/** Batches that lock one row of the attacker, do much, and fail at their end. */
const batchesOnOneRow: Attack['prepare'] = async (url, attacker) => {
  const tag = await made(url, attacker, 'tags', { label: `tag ${++teams}` });
  const update = (data: unknown) => ({ op: 'update', collection: 'documents', id: documentId(100), data });
  return post('/api/batch', {
    operations: [
      update({ score: 1 }),
      ...Array.from({ length: 98 }, () => update({ tags: { add: [tag] } })),
      { op: 'delete', collection: 'documents', id: '00000000-0000-7000-8000-000000000000' },
    ],
  });
};

const anyOf = (count: number): string =>
  Array.from({ length: count }, (_, i) => `any(comments as c, c.body contains "no ${i}")`).join(' or ');

const slowQuery: Attack['prepare'] = () => post('/api/documents/query', { filter: anyOf(40), count: 'exact' });
const deepList: Attack['prepare'] = () => ({
  path: '/api/comments?offset=90000&limit=100&expand=document,author',
  headers: { prefer: 'count=exact' },
});

const dearest: readonly Attack[] = [
  {
    name: 'batch of 100 creates with 100 tags each',
    loops: 6,
    async prepare(url, attacker) {
      const labels = Array.from({ length: 100 }, () => `tag ${++teams}`);
      const tags: string[] = [];
      for (const label of labels) tags.push(await made(url, attacker, 'tags', { label }));
      const create = { op: 'create', collection: 'documents', data: { title: 'b', tags: { set: tags } } };
      return post('/api/batch', { operations: Array.from({ length: 100 }, () => create) });
    },
  },
  {
    name: 'query of 70,000 values',
    loops: 6,
    prepare: () =>
      post('/api/documents/query', {
        filter: 'title in $x',
        params: { x: Array.from({ length: 70_000 }, (_, i) => `v${i}`) },
      }),
  },
  {
    name: 'nested count of three levels',
    loops: 6,
    prepare: () =>
      post('/api/users/query', {
        filter: 'count(memberships) >= 0 and any(memberships as m, count(m.team.documents) >= 0)',
        count: 'exact',
      }),
  },
  {
    name: 'aggregate of 20 measures',
    loops: 6,
    prepare: () =>
      post('/api/documents/aggregate', {
        group_by: ['owner', 'score', 'status'],
        measures: Object.fromEntries(Array.from({ length: 20 }, (_, i) => [`m${i}`, `sum(score)`])),
        limit: 1000,
      }),
  },
  {
    name: 'count behind an offset of 1,000,000',
    loops: 6,
    prepare: () => ({ path: '/api/documents?offset=1000000', headers: { prefer: 'count=exact' } }),
  },
];

export const ATTACKS: readonly Attack[] = [
  { name: 'N1 expands that come back, 9 KiB', loops: 3, prepare: expandsThatComeBack(9 * 1024) },
  { name: 'N1 expands that come back, 48 KiB', loops: 3, prepare: expandsThatComeBack(48 * 1024) },
  { name: 'N1 expands that come back, 60 KiB', loops: 3, prepare: expandsThatComeBack(60 * 1024) },
  { name: 'N2 batches on one row, 20 loops', loops: 20, prepare: batchesOnOneRow },
  { name: 'N2 batches on one row, 60 loops', loops: 60, prepare: batchesOnOneRow },
  { name: 'N2 batches on one row, a burst of 20', loops: 20, isBurst: true, prepare: batchesOnOneRow },
  ...[6, 16, 64].flatMap((loops) => [
    { name: `N3 A slow queries, ${loops} loops`, loops, prepare: slowQuery },
    { name: `N3 B deep lists with counts, ${loops} loops`, loops, prepare: deepList },
  ]),
  ...dearest,
  {
    name: 'N5 1 MiB of nested JSON',
    loops: 60,
    prepare: () => ({ method: 'POST', path: '/api/documents', text: '['.repeat(500_000) + ']'.repeat(500_000) }),
  },
  {
    name: 'query of 250 subqueries',
    loops: 6,
    prepare: () =>
      post('/api/documents/query', {
        filter: Array.from({ length: 85 }, (_, i) => `any(comments as c, c.body = "${i}")`).join(' or '),
      }),
  },
];
