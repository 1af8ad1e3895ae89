/** The people and records that the attacks A01–A65 are tried on. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { upload } from '../files/sending.ts';
import type { Answer } from '../support/client.ts';
import { makeTag } from '../support/records.ts';
import { makePeople, ROUTES_SCHEMA, type TestService, type User } from '../support/service.ts';
import { insertRecord } from '../support/system-records.ts';

export const ATTACKED_SCHEMA = `${ROUTES_SCHEMA}\n${readFileSync(join(import.meta.dirname, 'attacks.yaml'), 'utf8')}`;

export interface AttackWorld {
  readonly service: TestService;
  /** A member, who owns what follows. */
  readonly ann: User;
  /** A member: the attacker. */
  readonly bob: User;
  /** An editor, who assigns `member`. */
  readonly ed: User;
  readonly root: User;
  /** Ann's; bob cannot read it. */
  readonly draft: string;
  readonly published: string;
  /** On both posts; no caller can read it. */
  readonly hiddenTag: string;
  /** Ann's, on the published post; bob cannot read it. */
  readonly cover: string;
  /** Ann's, `text/html`; bob cannot read it. */
  readonly file: string;
  /** Ann is the chief of the first, bob of the second. */
  readonly rooms: readonly [string, string];
  readonly bobsSeat: string;
}

/** An attack: the attempt, and its only permitted outcome. */
export interface Attack {
  readonly id: string;
  readonly name: string;
  readonly attempt: (world: AttackWorld) => Promise<unknown>;
  readonly expected: unknown;
}

export async function makeAttackWorld(service: TestService): Promise<AttackWorld> {
  const people = await makePeople(service);
  const { ann, bob } = people;
  const made = async (answer: Promise<Answer>): Promise<string> => {
    const { status, body, text } = await answer;
    if (status !== 201) throw new Error(`the world of the attacks is not made: ${text}`);
    return body.data.id;
  };
  const visible = await makeTag(service, { name: 'a tag' });
  const hiddenTag = await makeTag(service, { name: 'a tag that will be hidden' });
  const tags = { set: [visible, hiddenTag] };
  const post = (data: object) => made(ann.client.post('/api/posts', { data: { tags, ...data } }));
  const draft = await post({ title: 'a draft', slug: 'taken', status: 'draft' });
  const published = await post({ title: 'published', status: 'published', score: 7 });
  const cover = await made(ann.client.post('/api/covers', { data: { url: 'https://example.org', post: published } }));
  const file = await made(
    upload(ann.client, { bytes: '<script>alert(1)</script>', name: 'x.html', type: 'text/html' }),
  );
  const [first, second] = [
    await made(ann.client.post('/api/rooms', { data: { name: 'first' } })),
    await made(bob.client.post('/api/rooms', { data: { name: 'second' } })),
  ];
  await seat(service, first, ann);
  const bobsSeat = await seat(service, second, bob);
  await ann.client.patch(`/api/tags/${hiddenTag}`, { data: { hidden: true } });
  return { service, ...people, draft, published, hiddenTag, cover, file, rooms: [first, second], bobsSeat };
}

/** A first chief, whom no rule was asked about. */
async function seat({ app }: TestService, room: string, user: User): Promise<string> {
  const at = '2026-01-01T00:00:00.000000Z';
  return insertRecord(app, 'seats', { kind: 'chief', room, user: user.id, created_at: at, updated_at: at });
}
