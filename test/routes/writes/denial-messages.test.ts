// @module-tag partitions
/** Messages of access rules: a 403 has them for callers who may read the record, where no other rule could have allowed. */
import { beforeAll, expect, test } from 'vitest';
import type { Answer } from '../../support/client.ts';
import { NOBODY } from '../../support/records.ts';
import { describeRoutesOnOne, type User } from '../../support/service.ts';
import { insertRecord } from '../../support/system-records.ts';

const SCHEMA = `
roles: { member: , editor: { includes: [member] }, author: { includes: [member] }, admin: { includes: [editor] } }
register: { roles: [member] }
collections:
  posts:
    fields:
      title: string
      status: { type: string, required: true, default: draft, enum: [draft, published] }
      hidden: { type: bool, required: true, default: false }
      slug:
        type: string
        access:
          write: { when: '@next.status = "draft" and changed(@record.slug)', message: the address of a post is fixed }
      weight: { type: int, access: { write: [{ roles: [editor], message: editors weigh posts }] } }
    relations:
      owner: { kind: belongs_to, collection: users, required: true, default: '@request.auth.id' }
    access:
      view: '@record.hidden = false'
      create: { when: '@record.status = "draft"', message: a post begins as a draft }
      update:
        - roles: [admin]
        - roles: [author]
          when: '@record.owner = @request.auth.id'
          message: authors change their own posts
        - when: '@record.status = "draft" and @request.auth.roles contains "member"'
          message: a published post does not change
      delete: { when: '@record.status = "draft"', message: only drafts can be deleted }
  notes:
    fields: { text: string, hidden: { type: bool, required: true, default: false } }
    access:
      view: '@record.hidden = false'
      create: { when: '@request.auth.roles contains "editor"', message: only editors write notes }
      update: { when: '@request.auth.roles contains "editor" and @record.text != "x"', message: only editors change notes }
      delete:
        - { roles: [editor], when: '@record.text = "x"', message: editors delete notes }
        - { when: '@request.auth.email = "x"', message: a mail of x deletes notes }
  users:
    access: { view: true }
`;
const AT = { created_at: '2026-01-01T00:00:00.000000Z', updated_at: '2026-01-01T00:00:00.000000Z' };
const STANDARD = 'the access rules do not allow this';

describeRoutesOnOne(
  'messages of rules',
  (service) => {
    let ann: User;
    let author: User;
    let editor: User;
    beforeAll(async () => {
      [ann, author, editor] = await Promise.all([service.user(), service.user('author'), service.user('editor')]);
    });
    const outcome = ({ status, body }: Answer): readonly unknown[] => [status, body?.detail];
    const put = (collection: string, data: object): Promise<string> =>
      insertRecord(service.app, collection, { ...AT, hidden: false, ...data });
    const post = (data: object): Promise<string> => put('posts', { status: 'draft', owner: editor.id, ...data });
    const patch = (id: string, data: object, user = ann) => user.client.patch(`/api/posts/${id}`, { data });

    test('the only rule that could have allowed a write says why it does not', async () => {
      const id = await post({ status: 'published' });
      expect(outcome(await patch(id, { title: 'a' }))).toEqual([403, 'a published post does not change']);
      expect(outcome(await ann.client.delete(`/api/posts/${id}`))).toEqual([403, 'only drafts can be deleted']);
      const made = await ann.client.post('/api/posts', { data: { status: 'published' } });
      expect(outcome(made)).toEqual([403, 'a post begins as a draft']);
    });

    test('several open rules give a 403 without a reason', async () => {
      expect(outcome(await patch(await post({ status: 'published' }), { title: 'a' }, author))).toEqual([
        403,
        STANDARD,
      ]);
    });

    test('a rule that the request alone denies says why, to those whose roles it is for', async () => {
      expect(outcome(await ann.client.post('/api/notes', { data: {} }))).toEqual([403, 'only editors write notes']);
      const id = await put('notes', { text: 'x' });
      const change = await ann.client.patch(`/api/notes/${id}`, { data: { text: 'y' } });
      expect(outcome(change)).toEqual([403, 'only editors change notes']);
      // Its other rule is for editors.
      expect(outcome(await ann.client.delete(`/api/notes/${id}`))).toEqual([403, 'a mail of x deletes notes']);
    });

    test('a hidden record is not found, and its rules tell nothing', async () => {
      const id = await post({ status: 'published', hidden: true });
      const missing = await patch(NOBODY, { title: 'a' });
      for (const answer of [await patch(id, { title: 'a' }), await ann.client.delete(`/api/posts/${id}`)])
        expect(outcome(answer)).toEqual([404, missing.body.detail]);
    });

    test('a denial by the request alone tells nothing of a hidden record, nor of a missing one', async () => {
      const hidden = await put('notes', { text: 'x', hidden: true });
      for (const id of [hidden, NOBODY, 'x']) {
        expect(outcome(await ann.client.patch(`/api/notes/${id}`, { data: { text: 'y' } }))).toEqual([403, STANDARD]);
      }
    });

    test('the rule of a field says why, at the pointer of the field', async () => {
      const of = (answer: Answer) => [answer.status, answer.body.errors];
      const error = (name: string, detail: string) => [{ pointer: `/data/${name}`, code: 'forbidden', detail }];
      const created = await ann.client.post('/api/posts', { data: { weight: 1 } });
      expect(of(created)).toEqual([403, error('weight', 'editors weigh posts')]);
      const published = await post({ status: 'published', owner: author.id });
      const refused = await patch(published, { slug: 'a' }, author);
      expect(of(refused)).toEqual([403, error('slug', 'the address of a post is fixed')]);
      // Nothing has shown yet that the caller may read the record.
      const early = await patch(await post({ hidden: true }), { weight: 1 });
      expect(of(early)).toEqual([403, error('weight', 'you may not set this here; leave it out')]);
    });

    test('a dry run tells the message too', async () => {
      const id = await post({ status: 'published' });
      const { body } = await ann.client.post('/api/posts/can', { action: 'delete', id });
      expect(body.data).toEqual({
        allowed: false,
        status: 403,
        code: 'forbidden',
        message: 'only drafts can be deleted',
        errors: [],
      });
      const hidden = await post({ status: 'published', hidden: true });
      const unread = await ann.client.post('/api/posts/can', { action: 'delete', id: hidden });
      expect(unread.body.data).toEqual({ allowed: false, status: 404, code: 'not_found', errors: [] });
    });

    test('a batch tells it with the operation', async () => {
      const id = await post({ status: 'published' });
      const operations = [{ op: 'delete', collection: 'posts', id }];
      const { status, body } = await ann.client.post('/api/batch', { operations });
      expect([status, body.detail, body.operation]).toEqual([403, 'only drafts can be deleted', 0]);
    });

    test('a write by filter has it with each record that the caller may read', async () => {
      const id = await post({ status: 'published', title: 'f' });
      const ofAuthor = await post({ status: 'published', title: 'g', owner: author.id });
      await post({ status: 'published', title: 'f', hidden: true });
      const ofFilter = async (path: string, filter: string, data?: object, user = ann) => {
        const { status, body } = await user.client.post(`/api/posts/${path}`, { filter, data });
        return [status, body.errors];
      };
      const error = (record: string, detail: string) => ({ pointer: '/filter', code: 'forbidden', detail, record });
      expect(await ofFilter('delete', 'title = "f"')).toEqual([403, [error(id, 'only drafts can be deleted')]]);
      expect(await ofFilter('update', 'title = "f"', { title: 'a' })).toEqual([
        403,
        [error(id, 'a published post does not change')],
      ]);
      // Another rule could have allowed it.
      expect(await ofFilter('update', 'title = "f"', { title: 'a' }, author)).toEqual([403, [error(id, STANDARD)]]);
      expect(await ofFilter('update', 'title = "g"', { slug: 'a' }, author)).toEqual([
        403,
        [{ ...error(ofAuthor, 'the address of a post is fixed'), pointer: '/data/slug' }],
      ]);
    });
  },
  { schema: SCHEMA },
);
