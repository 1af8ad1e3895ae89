/**
 * The requests of three people in two teams and of an administrator: each kind of route over the multi-tenant sample
 * (docs/distributed.yaml), with what is refused, hidden or missing. Names have no chance in them, so that two databases
 * answer alike.
 */
import type { App } from '../../src/http/app.ts';
import type { Answer } from '../support/client.ts';
import type { Recorder, RecordingClient } from './recorder.ts';

const PASSWORD = 'a password of the script';
const NOWHERE = '00000000-0000-4000-8000-00000000dead';

interface Person {
  readonly id: string;
  readonly client: RecordingClient;
}

const dataOf = ({ body }: Answer) => body?.data ?? {};
const idOf = (answer: Answer): string => dataOf(answer).id ?? NOWHERE;
const versionOf = ({ headers }: Answer): string => headers.get('etag') ?? '""';

export async function runScript(recorder: Recorder, app: App): Promise<void> {
  const people = await meet(recorder, app);
  const teams = await found(people);
  const written = await write(people, teams);
  await read(people, teams, written);
  await query(people, teams, written);
  await change(people, teams, written);
  await together(people, teams, written);
  await attach(people, written);
  await program(recorder, people, teams);
  await subscribe(people);
  await administer(people, written);
  await leave(recorder, people, teams, written);
}

type People = Awaited<ReturnType<typeof meet>>;
type Teams = Awaited<ReturnType<typeof found>>;
type Written = Awaited<ReturnType<typeof write>>;

// ---------------------------------------------------------------- accounts

async function meet(recorder: Recorder, app: App) {
  const anybody = recorder.as();
  for (const path of ['/healthz', '/readyz', '/api/documents', '/api/nothing', '/nothing']) await anybody.get(path);
  const person = async (name: string): Promise<Person> => {
    const email = `${name}@example.org`;
    await anybody.post('/api/auth/register', { email, password: PASSWORD });
    const { body } = await anybody.post('/api/auth/login', { email, password: PASSWORD });
    const client = recorder.as({ Authorization: `Bearer ${body.access_token}` });
    return { id: dataOf(await client.get('/api/auth/me')).id ?? body.user.id, client };
  };
  const [ann, bob, eve] = [await person('ann'), await person('bob'), await person('eve')];
  await anybody.post('/api/auth/register', { email: 'ann@example.org', password: PASSWORD });
  await anybody.post('/api/auth/register', { email: 'no address', password: 'x' });
  await anybody.post('/api/auth/login', { email: 'ann@example.org', password: 'another password' });
  await app.auth.admin.addUser({ email: 'root@example.org', password: PASSWORD, roles: ['admin'] });
  const root = await person('root');
  await ann.client.get('/api/auth/sessions');
  await ann.client.post('/api/auth/confirm', { password: PASSWORD });
  await ann.client.post('/api/auth/confirm', { password: 'another password' });
  await ann.client.get('/api/users');
  await root.client.get('/api/users?limit=2');
  await bob.client.get(`/api/users/${ann.id}`);
  await ann.client.patch(`/api/users/${ann.id}`, { data: { name: 'Ann' } });
  await ann.client.patch(`/api/users/${bob.id}`, { data: { name: 'not me' } });
  await ann.client.patch(`/api/users/${ann.id}`, { data: { name: 'x'.repeat(81) } });
  await root.client.patch(`/api/users/${eve.id}`, { data: { roles: ['admin'] } });
  await root.client.patch(`/api/users/${eve.id}`, { data: { roles: ['member'] } });
  return { ann, bob, eve, root, anybody };
}

async function found({ ann, bob, eve, root }: People) {
  const team = async ({ client }: Person, name: string) => idOf(await client.post('/api/teams', { data: { name } }));
  const join = ({ client }: Person, data: object) => client.post('/api/memberships', { data });
  const [red, blue] = [await team(ann, 'red'), await team(eve, 'blue')];
  await team(ann, 'red');
  await team(ann, '');
  await ann.client.post('/api/teams', { data: { name: 'gray', created_by: bob.id } });
  const own = idOf(await join(ann, { team: red, user: ann.id, role: 'owner' }));
  await join(ann, { team: red, user: bob.id, role: 'editor' });
  await join(eve, { team: blue, user: eve.id, role: 'owner' });
  await join(eve, { team: blue, user: ann.id, role: 'editor' });
  await join(ann, { team: red, user: bob.id });
  await join(bob, { team: blue, user: bob.id });
  await join(ann, { team: NOWHERE, user: ann.id });
  await ann.client.get('/api/teams');
  await ann.client.get(`/api/teams/${red}?expand=memberships`);
  await bob.client.get(`/api/teams/${blue}`);
  await bob.client.get('/api/memberships?limit=100');
  await ann.client.patch(`/api/teams/${red}`, { data: { name: 'crimson' } });
  await bob.client.patch(`/api/teams/${red}`, { data: { name: 'mine' } });
  await ann.client.patch(`/api/memberships/${own}`, { data: { role: 'editor' } });
  await ann.client.patch(`/api/memberships/${own}`, { data: { role: 'owner' } });
  await ann.client.get('/api/documents');
  await ann.client.post('/api/documents', { data: { slug: 'early', title: 'without a team' } });
  for (const [person, id] of [
    [ann, red],
    [bob, red],
    [eve, blue],
  ] as const)
    await person.client.patch(`/api/users/${person.id}`, { data: { team: id } });
  await bob.client.patch(`/api/users/${bob.id}`, { data: { team: blue } });
  const tag = async (label: string) => idOf(await ann.client.post('/api/tags', { data: { label } }));
  const tags = [await tag('urgent'), await tag('late'), await tag('going')] as const;
  await tag('urgent');
  await root.client.get('/api/tags?sort=-label');
  return { red, blue, tags };
}

// ---------------------------------------------------------------- records

async function write({ ann, bob, eve, anybody }: People, { red, blue, tags }: Teams) {
  const document = ({ client }: Person, slug: string, data: object = {}): Promise<Answer> =>
    client.post('/api/documents', { data: { slug, title: `The ${slug}`, ...data } });
  const plan = idOf(await document(ann, 'plan', { score: 5, due_at: '2030-01-01T00:00:00Z' }));
  const notes = idOf(await document(ann, 'notes', { status: 'published', previous: plan, score: 9 }));
  const draft = idOf(await document(bob, 'draft', { tags: { add: [tags[0], tags[2]] }, related: { set: [plan] } }));
  const other = idOf(await document(eve, 'plan', { score: 1, tags: { add: [tags[2]] } }));
  const more: string[] = [];
  for (let i = 0; i < 6; i++) more.push(idOf(await document(i % 2 === 0 ? ann : bob, `more-${i}`, { score: i * 10 })));
  await document(ann, 'plan');
  await document(ann, 'big', { score: 101 });
  await document(ann, 'odd', { status: 'gone', nothing: 1 });
  await document(ann, 'stolen', { owner: bob.id });
  await document(ann, 'away', { team: blue });
  await document(bob, 'away', { team: blue });
  await document(ann, 'foreign', { previous: other });
  await document(ann, 'foreign', { tags: { add: [NOWHERE] } });
  await anybody.post('/api/documents', { data: { slug: 'x', title: 'x' } });
  await ann.client.post('/api/documents?expand=owner,tags', {
    data: { slug: 'shown', title: 'Shown', tags: { add: [tags[1]] } },
  });
  const cover = idOf(await ann.client.post('/api/covers', { data: { document: plan, caption: 'front' } }));
  await ann.client.post('/api/covers', { data: { document: plan, caption: 'again' } });
  await bob.client.post('/api/covers', { data: { document: plan, caption: 'not mine' } });
  await ann.client.post('/api/covers', { data: { caption: 'without a document' } });
  const covered = await ann.client.post('/api/documents', { data: { slug: 'taker', title: 'Taker', cover } });
  await ann.client.patch(`/api/documents/${plan}`, { data: { cover } });
  const comment = async ({ client }: Person, data: object) => idOf(await client.post('/api/comments', { data }));
  const first = await comment(ann, { document: plan, body: 'first' });
  const answer = await comment(bob, { document: plan, body: 'second', answer_to: first });
  await comment(bob, { document: notes, body: 'third' });
  await comment(eve, { document: plan, body: 'from outside' });
  await comment(eve, { document: other, body: 'inside' });
  await comment(ann, { document: plan, body: '' });
  const event = async ({ client }: Person, data: object) => idOf(await client.post('/api/events', { data }));
  const [here, there] = [
    await event(ann, { team: red, what: 'opened', document: plan }),
    await event(eve, { team: blue, what: 'opened elsewhere' }),
  ];
  await event(ann, { team: blue, what: 'visited' });
  await event(bob, { team: blue, what: 'intruded' });
  await event(ann, { what: 'nowhere' });
  const keyed = { data: { slug: 'once', title: 'Once' } };
  for (const body of [keyed, keyed, { data: { slug: 'twice', title: 'Twice' } }])
    await ann.client.post('/api/documents', body, { 'Idempotency-Key': 'one' });
  await ann.client.post('/api/tags', { data: { label: 'keyed' } }, { 'Idempotency-Key': 'two' });
  await ann.client.post('/api/tags', { data: { label: 'keyed' } }, { 'Idempotency-Key': 'two' });
  return { plan, notes, draft, other, more, cover, first, answer, here, there, taker: idOf(covered) };
}

async function read({ ann, bob, eve, root }: People, { red, blue, tags }: Teams, all: Written): Promise<void> {
  const { plan, notes, draft, other, cover, first, here, there } = all;
  for (const { client } of [ann, bob, eve, root]) {
    for (const id of [plan, other, NOWHERE]) await client.get(`/api/documents/${id}`);
    await client.get('/api/documents?limit=3');
  }
  const everything = 'previous,related,tags,cover,comments,owner,team';
  await ann.client.get(`/api/documents/${notes}?expand=${everything}`);
  await ann.client.get(`/api/documents/${draft}?expand=${everything}`);
  await ann.client.get(`/api/documents/${plan}?expand=nothing`);
  await ann.client.get(`/api/covers/${cover}?expand=document,image`);
  await ann.client.get(`/api/comments/${first}?expand=document,answers,author`);
  for (const { client } of [ann, bob, eve, root]) for (const id of [here, there]) await client.get(`/api/events/${id}`);
  for (const list of [
    `documents?limit=100&expand=${everything}`,
    'documents?status=published',
    `documents?previous=${plan}`,
    `documents?owner=${bob.id}&limit=2`,
    `documents?tags_any=${tags[0]}`,
    `documents?related_any=${plan}`,
    `documents?cover=${cover}`,
    `documents?comments_any=${first}`,
    'documents?slug=plan&score=5',
    'documents?offset=2&limit=2',
    'documents?sort=-score&limit=3',
    'documents?sort=due_at&limit=3',
    `documents?team=${red}&limit=1`,
    `documents?team=${blue}&limit=1`,
    'documents?nothing=1',
    'documents?limit=1001',
    'comments?sort=-created_at',
    `comments?document=${plan}&expand=author`,
    'covers',
    'events',
    `events?team=${red}`,
    `events?team=${blue}&what=visited`,
    `events?team=${NOWHERE}`,
  ])
    await ann.client.get(`/api/${list}`);
  for (const count of ['exact', 'estimate'])
    await ann.client.get('/api/documents?limit=1', { Prefer: `count=${count}` });
  await root.client.get(`/api/events?team=${blue}`);
  for (const [{ client }, id] of [
    [ann, plan],
    [bob, plan],
    [eve, plan],
    [ann, draft],
  ] as const)
    await client.get(`/api/documents/${id}/can`);
  await ann.client.get(`/api/events/${here}/can`);
  await ann.client.get('/api/events/can');
  await ann.client.get(`/api/teams/${red}/can`);
  for (const rehearsal of [
    { action: 'create', data: { slug: 'fresh', title: 'Fresh' } },
    { action: 'create', data: { slug: 'plan', title: 'Taken' } },
    { action: 'create', data: { slug: 'fresh', title: 'Fresh', team: blue } },
    { action: 'update', id: plan, data: { title: 'New' } },
    { action: 'update', id: draft, data: { owner: ann.id } },
    { action: 'delete', id: plan },
    { action: 'delete', id: draft },
    { action: 'delete', id: other },
  ])
    await ann.client.post('/api/documents/can', rehearsal);
}

async function query({ ann, eve, root }: People, { red, blue, tags }: Teams, all: Written): Promise<void> {
  const ask = (body: object, { client }: Person = ann): Promise<Answer> => client.post('/api/documents/query', body);
  for (const filter of [
    'score > 3 and status = "draft"',
    'slug starts with "more" or title contains "plan"',
    'due_at is null and score >= 20',
    'previous.slug = "plan"',
    'owner = @request.auth.id',
    'owner.name = "Ann"',
    'any(comments as c, c.body = "first")',
    'any(comments as c, any(c.answers as a, a.body = "second"))',
    'count(related as r, true) > 0',
    'count(comments as c, c.author = @request.auth.id) = 1',
    'any(tags as t, t.label in ["urgent", "late"])',
    'not any(tags as t, true)',
    'cover.caption = "front"',
    'all(comments as c, c.body != "x")',
    'team.name = "crimson"',
    'any(related as r, r.slug = "plan" and r.score = 5)',
    'slug in ["plan", "notes"]',
    'score = null',
    'nothing = 1',
    'score > ',
  ])
    await ask({ filter, sort: ['slug'], fields: ['slug', 'score'] });
  for (const rest of [
    { sort: ['-score', 'slug'], limit: 3, count: 'exact' },
    { sort: ['previous.slug', 'slug'], limit: 4 },
    { sort: ['cover.caption', '-id'], limit: 4, capabilities: true },
    { sort: ['owner.name', 'slug'], limit: 4, expand: { owner: { fields: ['name'] } } },
    { filter: 'slug = $slug', params: { slug: 'draft' }, expand: { tags: {}, related: { expand: { cover: {} } } } },
    { filter: 'slug = "plan"', expand: { comments: { filter: 'body = "second"', sort: ['-created_at'], limit: 1 } } },
    { sort: ['nothing'] },
  ])
    await ask(rest);
  const page = await ask({ sort: ['score', 'slug'], limit: 2, fields: ['slug'] });
  const next = page.body?.page?.next_cursor;
  await ask({ sort: ['score', 'slug'], limit: 2, fields: ['slug'], cursor: next });
  await ask({ sort: ['slug'], limit: 2, cursor: next });
  await ask({ filter: 'score > 0', sort: ['slug'], fields: ['slug'] }, eve);
  const events = (route: string, body: object, { client }: Person = ann) => client.post(`/api/events/${route}`, body);
  const inTeam = { filter: 'team = $team', params: { team: red } };
  await events('query', inTeam);
  await events('query', { filter: 'what = "opened"' });
  await events('query', { filter: 'team = $team and document.slug = "plan"', params: { team: red } });
  await events('query', { filter: 'team in $teams', params: { teams: [red, blue] } });
  await events('query', { ...inTeam, params: { team: blue } }, root);
  await events('aggregate', { ...inTeam, group_by: ['what'], measures: { n: 'count' } });
  await events('aggregate', { measures: { n: 'count' } });
  const measure = (body: object): Promise<Answer> => ann.client.post('/api/documents/aggregate', body);
  await measure({ group_by: ['status'], measures: { n: 'count', top: { max: 'score' } } });
  await measure({ group_by: ['owner'], measures: { mean: { avg: 'score' }, all: { sum: 'score' } }, sort: ['-all'] });
  await measure({ group_by: [{ year: 'due_at' }], measures: { n: 'count' } });
  await measure({ filter: 'any(comments as c, true)', group_by: ['team'], measures: { n: 'count' } });
  await measure({ measures: { low: { min: 'due_at' } } });
  await measure({ measures: { low: { min: 'nothing' } } });
  await ann.client.post('/api/tags/query', { filter: 'label starts with "u"' });
  await ann.client.post('/api/comments/query', { filter: 'answer_to = $first', params: { first: all.first } });
  await ann.client.post('/api/comments/query', { filter: `document.tags_any = "${tags[0]}"` });
}

async function change({ ann, bob, eve, root }: People, { blue, tags }: Teams, all: Written): Promise<void> {
  for (const title of ['Made', 'Changed']) await ann.client.put('/api/documents/by/slug/upserted', { data: { title } });
  const matching = { filter: 'slug = "upserted"' };
  await ann.client.post('/api/documents/update', { ...matching, data: { title: 'Changed again' } });
  await eve.client.post('/api/documents/delete', matching);
  await ann.client.post('/api/documents/delete', { ...matching, skip_refused: true });
  await eve.client.put('/api/documents/by/slug/plan', { data: { title: 'Of another team' } });
  const { plan, notes, draft, other, cover, first, answer, taker, more } = all;
  const patch = ({ client }: Person, id: string, data: object, headers = {}): Promise<Answer> =>
    client.patch(`/api/documents/${id}`, { data }, headers);
  await patch(ann, plan, { title: 'A better plan', score: 6 });
  await patch(bob, plan, { title: 'not mine, not given away' });
  await patch(bob, plan, { owner: bob.id });
  await patch(eve, plan, { title: 'hidden' });
  await patch(ann, plan, { team: blue });
  await patch(ann, plan, { slug: 'notes' });
  await patch(ann, plan, { status: 'gone' });
  await patch(ann, plan, { previous: other });
  await patch(ann, plan, { previous: notes, related: { add: [draft], remove: [NOWHERE] }, tags: { set: [tags[1]] } });
  await patch(ann, plan, { related: { set: [] }, previous: null });
  await patch(ann, notes, { cover });
  await patch(ann, notes, { cover: null });
  await patch(ann, taker, { cover });
  await patch(bob, notes, { cover });
  await patch(ann, NOWHERE, { title: 'x' });
  const version = versionOf(await ann.client.get(`/api/documents/${plan}`));
  await patch(ann, plan, { title: 'held' }, { 'If-Match': version });
  await patch(ann, plan, { title: 'late' }, { 'If-Match': version });
  await ann.client.delete(`/api/documents/${plan}`, { 'If-Match': version });
  await ann.client.patch(`/api/documents/${plan}?expand=tags,comments`, { data: { score: 7 } });
  await ann.client.patch(`/api/covers/${cover}`, { data: { caption: 'back' } });
  await bob.client.patch(`/api/covers/${cover}`, { data: { caption: 'not mine' } });
  await ann.client.patch(`/api/covers/${cover}`, { data: { document: plan } });
  await bob.client.patch(`/api/comments/${answer}`, { data: { body: 'edited' } });
  await ann.client.patch(`/api/comments/${answer}`, { data: { body: 'not mine' } });
  await ann.client.patch(`/api/comments/${first}`, { data: { document: notes } });
  await root.client.patch(`/api/events/${all.here}`, { data: { what: 'x' } });
  await ann.client.patch(`/api/tags/${tags[0]}`, { data: { label: 'x' } });
  for (const id of more.slice(0, 2)) await patch(ann, id, { score: 99 });
  await ann.client.patch(`/api/users/${ann.id}`, { data: { team: blue } });
  await ann.client.get('/api/documents?limit=2');
  await patch(ann, other, { title: 'as a guest' });
  await ann.client.get(`/api/documents/${plan}`);
}

async function together({ ann, bob, eve }: People, { red, blue, tags }: Teams, all: Written): Promise<void> {
  const send = ({ client }: Person, operations: readonly object[], headers = {}): Promise<Answer> =>
    client.post('/api/batch', { operations }, headers);
  await ann.client.patch(`/api/users/${ann.id}`, { data: { team: red } });
  const made = (slug: string, as: string) => ({
    op: 'create',
    collection: 'documents',
    data: { slug, title: slug, tags: { add: [tags[0]] } },
    as,
  });
  const said = (body: string) => ({ op: 'create', collection: 'comments', data: { document: { $ref: 'd' }, body } });
  await send(ann, [
    made('batch-1', 'd'),
    said('in a batch'),
    { op: 'update', collection: 'documents', id: { $ref: 'd' }, data: { score: 1 } },
    { op: 'delete', collection: 'documents', id: all.more[0] },
  ]);
  await send(ann, [made('batch-2', 'd'), { op: 'delete', collection: 'documents', id: all.draft }]);
  await send(ann, [made('batch-2', 'd'), made('batch-2', 'e')]);
  await send(eve, [made('batch-3', 'd'), said('of another team')]);
  await send(bob, [{ op: 'update', collection: 'documents', id: all.draft, data: { score: 3, owner: ann.id } }]);
  const keyed = [made('batch-4', 'd'), { op: 'create', collection: 'tags', data: { label: 'batch' } }];
  for (let i = 0; i < 2; i++) await send(ann, keyed, { 'Idempotency-Key': 'three' });
  await send(ann, [
    { op: 'create', collection: 'events', data: { team: red, what: 'in one team' } },
    { op: 'create', collection: 'events', data: { team: blue, what: 'in the other' } },
  ]);
  await send(ann, [{ op: 'create', collection: 'nothing', data: {} }]);
}

async function attach({ ann, bob, eve, root }: People, { cover, plan }: Written): Promise<void> {
  const file = idOf(await ann.client.upload('/api/files', 'some bytes'));
  await ann.client.get(`/api/files/${file}`);
  await eve.client.get(`/api/files/${file}`);
  await ann.client.get(`/api/files/${file}/content`);
  await ann.client.post(`/api/files/${file}/link`);
  await ann.client.patch(`/api/covers/${cover}`, { data: { image: file } });
  await ann.client.get(`/api/documents/${plan}?expand=cover`);
  await bob.client.delete(`/api/files/${file}`);
  await root.client.delete(`/api/files/${file}`);
  await ann.client.get(`/api/covers/${cover}`);
}

// ---------------------------------------------------------------- programs and administration

async function program(recorder: Recorder, { ann, bob, root, anybody }: People, { red }: Teams): Promise<void> {
  await anybody.post('/api/auth/guest');
  const made = await root.client.post('/api/auth/keys', { name: 'reader', roles: ['member'] });
  await ann.client.post('/api/auth/keys', { name: 'greedy', roles: ['admin'] });
  const key = idOf(made);
  await root.client.get('/api/auth/keys');
  await root.client.get(`/api/auth/keys/${key}`);
  await bob.client.get(`/api/auth/keys/${key}`);
  const client = recorder.as({ Authorization: `Bearer ${made.body?.secret}` });
  await client.get('/api/documents?limit=3');
  await client.get(`/api/events?team=${red}`);
  await client.get('/api/users?limit=2');
  await root.client.patch(`/api/auth/keys/${key}`, { name: 'reader of events' });
  await root.client.post(`/api/auth/keys/${key}/rotate`, {});
  await root.client.delete(`/api/auth/keys/${key}`);
  await client.get('/api/documents?limit=3');
}

/** No collection of the script has a feed. */
async function subscribe({ ann }: People): Promise<void> {
  await ann.client.get('/api/documents/changes');
  await ann.client.post('/api/documents/changes', { filter: 'score > 3' });
  await ann.client.post('/api/changes', { feeds: { documents: { collection: 'documents' } } });
}

async function administer({ ann, bob, root, anybody }: People, { plan }: Written): Promise<void> {
  await ann.client.post('/api/auth/users', { email: 'fay@example.org', roles: ['member'] });
  await anybody.post('/api/auth/setup', { token: 'x'.repeat(43), email: 'gil@example.org', password: PASSWORD });
  const added = await root.client.post('/api/auth/users', { email: 'fay@example.org', roles: ['member'] });
  const fay = added.body?.user?.id ?? NOWHERE;
  for (const switched of ['disable', 'enable']) await root.client.post(`/api/users/${fay}/${switched}`);
  await root.client.get(`/api/users/${bob.id}/sessions`);
  await ann.client.get(`/api/users/${bob.id}/sessions`);
  await root.client.delete(`/api/users/${fay}/sessions`);
  await root.client.post(`/api/users/${fay}/password-reset`);
  const invite = (data: object) =>
    root.client.post('/api/users/invite', { email: 'hal@example.org', roles: ['member'], data });
  await invite({});
  await invite({ name: 'x'.repeat(81) });
  await ann.client.post('/api/users/invite', { email: 'ida@example.org', roles: ['member'] });
  const invites = await root.client.get('/api/users/invites');
  await anybody.post('/api/auth/invite/confirm', { token: 'x'.repeat(43), password: PASSWORD });
  await root.client.delete(`/api/users/invites/${invites.body?.data?.[0]?.id ?? NOWHERE}`);
  await root.client.get('/api/_audit?event=user_added');
  await ann.client.get('/api/_audit');
  await root.client.get('/api/auth/users?limit=5');
  await ann.client.get('/api/auth/users');
  await ann.client.post('/api/_explain', { action: 'read', collection: 'documents', id: plan });
}

// ---------------------------------------------------------------- deletes

async function leave(recorder: Recorder, people: People, { red, blue, tags }: Teams, all: Written): Promise<void> {
  const { ann, bob, eve, root, anybody } = people;
  const { plan, notes, draft, other, first, here } = all;
  for (const { client } of [eve, bob, ann]) await client.delete(`/api/documents/${notes}`);
  await ann.client.get(`/api/documents/${notes}`);
  await bob.client.get(`/api/documents/${draft}?expand=related,comments`);
  await ann.client.delete(`/api/comments/${first}`);
  await bob.client.get(`/api/comments/${all.answer}`);
  await ann.client.delete(`/api/documents/${plan}`);
  await ann.client.get(`/api/comments/${all.answer}`);
  await ann.client.get('/api/covers');
  await ann.client.delete(`/api/documents/${NOWHERE}`);
  await ann.client.delete(`/api/events/${here}`);
  await root.client.delete(`/api/events/${here}`);
  await ann.client.delete(`/api/tags/${tags[2]}`);
  await root.client.delete(`/api/tags/${tags[2]}`);
  await eve.client.get(`/api/documents/${other}?expand=tags`);
  await bob.client.get(`/api/documents/${draft}?expand=tags`);
  await bob.client.delete(`/api/teams/${red}`);
  const green = idOf(await eve.client.post('/api/teams', { data: { name: 'green' } }));
  await eve.client.post('/api/memberships', { data: { team: green, user: eve.id, role: 'owner' } });
  await eve.client.patch(`/api/users/${eve.id}`, { data: { team: green } });
  const one = idOf(await eve.client.post('/api/documents', { data: { slug: 'one', title: 'One' } }));
  const two = idOf(await eve.client.post('/api/documents', { data: { slug: 'two', title: 'Two', previous: one } }));
  await eve.client.post('/api/comments', { data: { document: two, body: 'soon gone' } });
  await eve.client.delete(`/api/teams/${green}`);
  await eve.client.patch(`/api/users/${eve.id}`, { data: { team: blue } });
  await eve.client.get(`/api/documents/${one}`);
  await eve.client.get('/api/documents');
  await root.client.delete(`/api/users/${bob.id}`);
  const { body } = await anybody.post('/api/auth/login', { email: 'eve@example.org', password: PASSWORD });
  const again = recorder.as({ Authorization: `Bearer ${body.access_token}` });
  await again.post('/api/auth/password', { current_password: PASSWORD, new_password: `${PASSWORD} again` });
  await again.post('/api/auth/logout');
  await again.get('/api/auth/me');
}
