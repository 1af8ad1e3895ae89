// @module-tag long
// @module-tag partitions
/**
 * S1: a record was a witness for itself. A rule was asked after the write, so a path that came back to the record's own collection met the very row
 * that was being judged. Now a write is judged against the database before it.
 * S14: the sample let an editor of a team take a document from its owner.
 */
import { beforeAll, describe, expect, test } from 'vitest';
import type { Answer } from '../../support/client.ts';
import { outcomeOf } from '../../support/records.ts';
import { describeOnBoth, type User } from '../../support/service.ts';
import { insertRecord } from '../../support/system-records.ts';

const CHIEF = 's.user = @request.auth.id and s.kind = "chief"';
const CHIEF_SITS = `any(@record.room.seats as s, ${CHIEF})`;
const seats = (update: string, create: string) => `
    fields: { kind: { type: string, required: true, default: plain } }
    relations:
      room: { kind: belongs_to, collection: rooms }
      user: { kind: belongs_to, collection: users, required: true, default: '@request.auth.id' }
    access:
      list: true
      read: true
      create: '${create}'
      update: '${update}'
      delete: true`;

const SCHEMA = `
roles: { member: , admin: { includes: [member] } }
register: { roles: [member] }
collections:
  users:
    relations: { chairs: { kind: has_many, collection: chairs, via: user } }
    access: { list: true, read: true }
  rooms:
    fields: { name: { type: string, required: true } }
    relations:
      seats: { kind: has_many, collection: seats, via: room }
      desks: { kind: has_many, collection: desks, via: room }
      chairs: { kind: has_many, collection: chairs, via: room }
      keys: { kind: has_one, collection: passes, via: room }
    access: { list: true, read: true, create: true, update: true, delete: true }
  seats:${seats(CHIEF_SITS, `${CHIEF_SITS} or @record.kind = "first" and none(@record.room.seats as s, true)`)}
  desks:${seats(`any(@next.room.desks as s, ${CHIEF})`, '@record.user = @request.auth.id')}
  chairs:${seats('none(@record.room.chairs as s, s.user = @request.auth.id)', 'none(@record.room.chairs as s, s.user = @request.auth.id)')}
  passes:
    fields: { holder: { type: string, required: true } }
    relations: { room: { kind: belongs_to, collection: rooms } }
    access:
      list: true
      read: true
      create: '@record.room.keys.holder = "me"'
      update: '@record.holder = @next.holder and (@next.room is null or @next.room.keys.holder = "me")'
      delete: true
  posts:
    fields: { title: { type: string, required: true } }
    relations:
      tags: { kind: many_to_many, collection: tags }
      twins: { kind: many_to_many, collection: posts }
    access:
      list: true
      read: true
      create: 'none(@record.twins as t, any(t.tags as g, g.label = "secret"))'
      update: 'any(@next.tags as g, g.label = "open") and any(@next.twins as t, any(t.tags as g, g.label = "open"))'
      delete: true
  tags:
    fields: { label: { type: string, required: true } }
    access: { list: true, read: true, create: true, update: true, delete: true }
`;

describeOnBoth(
  'S1: no record is a witness for itself',
  (service) => {
    let ann: User;
    let bob: User;
    beforeAll(async () => {
      [ann, bob] = await Promise.all([service.user(), service.user()]);
    });
    const post = (user: User, collection: string, data: object) => user.client.post(`/api/${collection}`, { data });
    const patch = (user: User, collection: string, id: string, data: object) =>
      user.client.patch(`/api/${collection}/${id}`, { data });
    const made = async (answer: Promise<Answer>): Promise<string> => {
      const { status, body, text } = await answer;
      if (status !== 201) throw new Error(text);
      return body.data.id;
    };
    const room = () => made(post(ann, 'rooms', { name: 'a room' }));
    /** Behind the rules' back: chairs of chiefs that no request may make. */
    const seated = async (user: User, roomId: string, kind = 'chief', collection = 'seats'): Promise<string> => {
      const at = '2026-01-01T00:00:00.000000Z';
      const values = { kind, room: roomId, user: user.id, created_at: at, updated_at: at };
      return insertRecord(service.app, collection, values);
    };

    describe('create', () => {
      test('a chief makes a chief, not the own new seat', async () => {
        const place = await room();
        expect(outcomeOf(await post(bob, 'seats', { room: place, kind: 'chief' }))).toEqual([403, 'forbidden']);
        await seated(ann, place);
        expect(outcomeOf(await post(bob, 'seats', { room: place, kind: 'chief' }))).toEqual([403, 'forbidden']);
        expect((await post(ann, 'seats', { room: place, kind: 'chief', user: bob.id })).status).toBe(201);
        expect((await post(bob, 'seats', { room: place, kind: 'chief' })).status).toBe(201);
      });

      test('the first record of a room meets no other, not even itself', async () => {
        const place = await room();
        expect((await post(bob, 'seats', { room: place, kind: 'first' })).status).toBe(201);
        expect(outcomeOf(await post(bob, 'seats', { room: place, kind: 'first' }))).toEqual([403, 'forbidden']);
      });

      test('a rule of once each allows the first, and not the second', async () => {
        const place = await room();
        expect((await post(bob, 'chairs', { room: place })).status).toBe(201);
        expect((await post(ann, 'chairs', { room: place })).status).toBe(201);
        expect(outcomeOf(await post(bob, 'chairs', { room: place }))).toEqual([403, 'forbidden']);
      });

      test('a has_one that leads back does not lead to the new record', async () => {
        const place = await room();
        expect(outcomeOf(await post(bob, 'passes', { room: place, holder: 'me' }))).toEqual([403, 'forbidden']);
        expect((await bob.client.get(`/api/passes?room=${place}`)).body.data).toEqual([]);
      });

      test('the rule sees new members of the record, and stored members of others', async () => {
        const [secret, open] = await Promise.all(['secret', 'open'].map((label) => made(post(ann, 'tags', { label }))));
        const hidden = await made(post(ann, 'posts', { title: 'a', tags: { set: [secret] } }));
        const plain = await made(post(ann, 'posts', { title: 'b', tags: { set: [open] } }));
        expect(
          (await post(bob, 'posts', { title: 'c', tags: { add: [secret] }, twins: { add: [plain] } })).status,
        ).toBe(201);
        expect(outcomeOf(await post(bob, 'posts', { title: 'd', twins: { add: [plain, hidden] } }))).toEqual([
          403,
          'forbidden',
        ]);
      });
    });

    describe('update', () => {
      test('a record does not follow itself into another room', async () => {
        const [own, other] = [await room(), await room()];
        const seat = await seated(bob, own);
        expect(outcomeOf(await patch(bob, 'seats', seat, { room: other }))).toEqual([403, 'forbidden']);
        expect((await bob.client.get(`/api/seats/${seat}`)).body.data.room).toBe(own);
        await seated(bob, other);
        expect((await patch(bob, 'seats', seat, { room: other })).status).toBe(200);
      });

      test('@next does not promote itself', async () => {
        const place = await room();
        const desk = await made(post(bob, 'desks', { room: place }));
        expect(outcomeOf(await patch(bob, 'desks', desk, { kind: 'chief' }))).toEqual([403, 'forbidden']);
        await seated(bob, place, 'chief', 'desks');
        expect((await patch(bob, 'desks', desk, { kind: 'chief' })).status).toBe(200);
      });

      test('a path back to the record meets the stored record', async () => {
        const place = await room();
        const desk = await seated(bob, place, 'chief', 'desks');
        // It was a chief's desk before, and is judged by that.
        expect((await patch(bob, 'desks', desk, { kind: 'plain' })).status).toBe(200);
        expect(outcomeOf(await patch(bob, 'desks', desk, { kind: 'chief' }))).toEqual([403, 'forbidden']);
        const chair = await made(post(bob, 'chairs', { room: place }));
        expect(outcomeOf(await patch(bob, 'chairs', chair, { kind: 'plain' }))).toEqual([403, 'forbidden']);
      });

      test('a has_one back meets the stored record', async () => {
        const [place, other] = [await room(), await room()];
        const at = '2026-01-01T00:00:00.000000Z';
        const values = { holder: 'me', room: place, created_at: at, updated_at: at };
        const key = await insertRecord(service.app, 'passes', values);
        expect(outcomeOf(await patch(bob, 'passes', key, { room: other }))).toEqual([403, 'forbidden']);
        expect((await patch(bob, 'passes', key, { room: place })).status).toBe(200);
      });

      test('the rule counts new members, and meets the stored record among them', async () => {
        const [open, closed] = await Promise.all(['open', 'closed'].map((label) => made(post(ann, 'tags', { label }))));
        const id = await made(post(bob, 'posts', { title: 'p', tags: { set: [closed] } }));
        const itself = { tags: { set: [open] }, twins: { set: [id] } };
        expect(outcomeOf(await patch(bob, 'posts', id, itself))).toEqual([403, 'forbidden']);
        const friend = await made(post(bob, 'posts', { title: 'q', tags: { set: [open] } }));
        expect(outcomeOf(await patch(bob, 'posts', id, { twins: { set: [friend] } }))).toEqual([403, 'forbidden']);
        expect((await patch(bob, 'posts', id, { tags: { set: [open] }, twins: { set: [friend] } })).status).toBe(200);
        expect((await patch(bob, 'posts', id, { twins: { set: [id] } })).status).toBe(200);
      });
    });
  },
  { schema: SCHEMA },
);

describeOnBoth('the sample', (service) => {
  let ada: User;
  let ben: User;
  let eve: User;
  let team: string;
  let other: string;
  const post = (user: User, collection: string, data: object) => user.client.post(`/api/${collection}`, { data });
  const join = (by: User, user: User, role: string, to = team) =>
    post(by, 'memberships', { team: to, user: user.id, role });
  beforeAll(async () => {
    [ada, ben, eve] = await Promise.all([service.user(), service.user(), service.user()]);
    team = (await post(ada, 'teams', { name: 'Engines' })).body.data.id;
    other = (await post(ben, 'teams', { name: 'Looms' })).body.data.id;
  });

  test('S1: the creator of a team makes its first owner, and owners make others', async () => {
    expect((await join(ada, ada, 'owner')).status).toBe(201);
    expect((await join(ada, ben, 'owner')).status).toBe(201);
    expect((await join(ben, eve, 'reader')).status).toBe(201);
  });

  test('S1: a user joins a team once, and a reader does not become an owner', async () => {
    expect(outcomeOf(await join(ada, eve, 'editor'))).toEqual([403, 'forbidden']);
    expect(outcomeOf(await join(eve, eve, 'owner'))).toEqual([403, 'forbidden']);
    const [membership] = (await eve.client.get(`/api/memberships?user=${eve.id}`)).body.data;
    expect(outcomeOf(await eve.client.patch(`/api/memberships/${membership.id}`, { data: { role: 'owner' } }))).toEqual(
      [403, 'forbidden'],
    );
  });

  test('S1: an owner does not carry the ownership into another team', async () => {
    // Eve owns a team of her own, and reads in Ben's, which makes it one that she can name.
    const own = (await post(eve, 'teams', { name: 'Decoys' })).body.data.id;
    const mine = (await join(eve, ada, 'owner', own)).body.data.id;
    expect((await join(ben, ada, 'reader', other)).status).toBe(201);
    expect(outcomeOf(await ada.client.patch(`/api/memberships/${mine}`, { data: { team: other } }))).toEqual([
      403,
      'forbidden',
    ]);
  });

  test('S14: an editor changes a document of the team, and takes it neither from its owner nor from the team', async () => {
    const document = (await post(ada, 'documents', { title: 'Notes', team })).body.data.id;
    const change = (user: User, data: object) => user.client.patch(`/api/documents/${document}`, { data });
    expect((await change(ben, { title: 'Our notes' })).status).toBe(200);
    for (const data of [{ owner: ben.id }, { team: null }, { team: other }, { owner: ben.id, team: null }])
      expect([data, ...outcomeOf(await change(ben, data))]).toEqual([data, 403, 'forbidden']);
    expect((await change(ada, { team: null })).status).toBe(200);
  });
});
