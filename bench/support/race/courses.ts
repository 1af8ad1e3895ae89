/** The requests that servers race with. */
import type { DocumentsWorld } from '../documents-world.ts';
import { documentId, OWN_EVERY } from '../documents-world.ts';
import type { LoadRequest } from '../load.ts';
import type { Course } from './race.ts';

const pages = (path: string) => (n: number) => ({ path: `${path}offset=${(n % 10) * 20}` });

/** Documents that are the caller's or published: two thirds of all. */
export const ownOrPublished: Course = {
  bench: 'list',
  title: 'A list of 20, the caller’s or published',
  request: pages('/api/documents?'),
  status: 200,
  targets: [
    { of: 'usual', atLeast: 2 },
    { of: 'best', atLeast: 0.85 },
    { p99: 'over p50', atMost: 3 },
  ],
};

/** Documents that are the caller’s or of one of their teams: six of a thousand. */
export const ownOrTeam: Course = {
  bench: 'list',
  title: 'B list of 20, the caller’s or of a team',
  request: pages('/api/team_documents?'),
  status: 200,
  targets: [{ of: 'usual', atLeast: 2.5 }],
};

/** The caller’s own drafts: one document of three thousand. */
export const fewMatch: Course = {
  bench: 'list',
  title: 'S list of the drafts that the caller may see',
  request: () => ({ path: '/api/documents?status=draft' }),
  status: 200,
  targets: [{ of: 'best', atLeast: 0.85 }],
};

/** Published ones. */
const PUBLISHED = 3_331;
export const byId: Course = {
  bench: 'read',
  title: 'C read by id',
  request: (n) => ({ path: `/api/documents/${documentId((n % PUBLISHED) * 3 + 1)}` }),
  status: 200,
  targets: [{ of: 'usual', atLeast: 1.4 }],
};

const NEW = { title: 'a new document', body: 'lorem ipsum '.repeat(12), score: 7 };
const TIMES = ['created_at', 'updated_at'];

export const create: Course = {
  bench: 'create',
  title: 'D create, rules over the row',
  request: () => ({ method: 'POST', path: '/api/documents', body: { data: NEW } }),
  status: 201,
  differs: ['id', ...TIMES],
  targets: [{ of: 'usual', atLeast: 0.85 }],
};

/** The caller is in the teams 0, 200, 400, 600 and 800. */
const teamId = (n: number): string => documentId(n).replace('01900000', '01900002');
export const createInTeam: Course = {
  bench: 'create',
  title: 'D create, rules that walk to the team',
  request: (n) => ({
    method: 'POST',
    path: '/api/team_documents',
    body: { data: { ...NEW, team: teamId((n % 5) * 200) } },
  }),
  status: 201,
  differs: ['id', ...TIMES],
  rejected: { method: 'POST', path: '/api/team_documents', body: { data: { ...NEW, team: teamId(3) } } },
  targets: [{ of: 'usual', atLeast: 0.85 }],
};

const patchOf = (table: string, n: number): LoadRequest => ({
  method: 'PATCH',
  path: `/api/${table}/${documentId(n * OWN_EVERY)}`,
  body: { data: { title: 'a changed title', score: 8 } },
});
const rejectedPatch = (table: string): LoadRequest => ({
  ...patchOf(table, 1),
  path: `/api/${table}/${documentId(1)}`,
});

/** Among 97 own documents, so that requests seldom wait for each other’s row. */
export const patch: Course = {
  bench: 'patch',
  title: 'E patch, rules over the row',
  request: (n) => patchOf('documents', (n % 97) + 1),
  status: 200,
  sample: () => patchOf('documents', 1),
  differs: TIMES,
  rejected: rejectedPatch('documents'),
  targets: [{ of: 'usual', atLeast: 0.85 }],
};

export const patchOfTeam: Course = {
  ...patch,
  title: 'E patch, rules that walk to the team',
  request: (n) => patchOf('team_documents', (n % 97) + 1),
  sample: () => patchOf('team_documents', 1),
  rejected: rejectedPatch('team_documents'),
};

/** Requests a second that a round is prepared for. */
const MOST_DELETES = 60_000;
const FIRST_NEW = 10_000_000;

/** Each turn deletes records that were made for it. */
export function remove(world: DocumentsWorld): Course {
  let next = FIRST_NEW;
  let end = FIRST_NEW;
  const one = (): LoadRequest => ({ method: 'DELETE', path: `/api/documents/${documentId(next++)}` });
  return {
    bench: 'delete',
    title: 'delete, rules over the row',
    request: one,
    status: 204,
    async prepare(seconds) {
      next = end;
      end += Math.ceil(seconds * MOST_DELETES) + 1_000;
      await world.addOwn(next, end - next);
    },
    sample: (server) => ({ method: 'DELETE', path: `/api/documents/${documentId(OWN_EVERY * (server + 1))}` }),
    rejected: { method: 'DELETE', path: `/api/documents/${documentId(2)}` },
    targets: [{ of: 'usual', atLeast: 0.85 }],
  };
}

/** Lists while two connections ask for counts over and over. */
export const besideCounts: Course = {
  ...ownOrPublished,
  bench: 'mixed',
  title: 'M list of 20 beside two connections that count',
  beside: {
    request: { path: '/api/documents?limit=1' },
    headers: { prefer: 'count=exact' },
    connections: 2,
  },
  targets: [{ p99: 'ms', atMost: 60 }],
};
