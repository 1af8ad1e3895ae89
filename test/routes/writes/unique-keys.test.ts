// @module-tag partitions
/** `unique: { within, where, ignore_case }`: who conflicts with whom, and where the error points. */
import { beforeAll, describe, expect, test } from 'vitest';
import { outcomeOf } from '../../support/records.ts';
import { describeRoutes, type TestService, type User } from '../../support/service.ts';

const SCHEMA = `
roles: { admin: { assigns: [member] }, member: {} }
register: { roles: [member] }
collections:
  shelves:
    fields: { name: string }
    access: { view: true, create: true }
  books:
    fields:
      title: { type: string, max: 80, unique: { within: [shelf, edition], where: '@record.archived = false', ignore_case: true } }
      edition: { type: int, required: true, default: 1 }
      archived: { type: bool, required: true, default: false }
      code: { type: string, max: 40, unique: { ignore_case: true } }
      place: { type: int, unique: { within: [shelf, edition] } }
      secret: { type: string, max: 40, unique: { where: '@record.archived = false' }, access: { read: '@record.archived = true' } }
    relations: { shelf: { kind: belongs_to, collection: shelves, required: true } }
    access: { view: true, create: true, update: true }
`;
const TAKEN = (name: string) => [409, 'unique_violation', `/data/${name} unique_violation`];

describeRoutes('unique keys', (service) => suite(service), { schema: SCHEMA });

function suite(service: TestService): void {
  let ann: User;
  let [shelf, other] = ['', ''];
  const create = (data: object) => ann.client.post('/api/books', { data: { shelf, ...data } });
  const made = async (data: object): Promise<string> => {
    const { status, body, text } = await create(data);
    if (status !== 201) throw new Error(text);
    return body.data.id;
  };
  beforeAll(async () => {
    ann = await service.user();
    const shelves = [1, 2].map((name) => ann.client.post('/api/shelves', { data: { name: `shelf ${name}` } }));
    [shelf = '', other = ''] = (await Promise.all(shelves)).map(({ body }) => body.data.id);
  });

  test('a value is taken in any letter case, beyond ASCII too', async () => {
    await made({ title: 'Ärger mit Ölen' });
    expect(outcomeOf(await create({ title: 'ÄRGER MIT ölen' }))).toEqual(TAKEN('title'));
    expect(outcomeOf(await create({ title: 'Arger mit Olen' }))).toEqual([201, undefined]);
    await made({ code: 'Émile' });
    expect(outcomeOf(await create({ code: 'éMILE' }))).toEqual(TAKEN('code'));
  });

  test('records of another shelf, of another edition and outside the condition are free', async () => {
    await made({ title: 'Emma' });
    expect(outcomeOf(await create({ title: 'emma', shelf: other }))).toEqual([201, undefined]);
    expect(outcomeOf(await create({ title: 'emma', edition: 2 }))).toEqual([201, undefined]);
    expect(outcomeOf(await create({ title: 'emma', archived: true }))).toEqual([201, undefined]);
    expect(outcomeOf(await create({ title: 'emma', archived: true }))).toEqual([201, undefined]);
    expect(outcomeOf(await create({ title: 'emma' }))).toEqual(TAKEN('title'));
  });

  test('a change into the condition conflicts, and one out of it frees the value', async () => {
    const first = await made({ title: 'Walden' });
    const second = await made({ title: 'walden', archived: true });
    const change = (id: string, data: object) => ann.client.patch(`/api/books/${id}`, { data });
    expect(outcomeOf(await change(second, { archived: false }))).toEqual(TAKEN('title'));
    expect(outcomeOf(await change(first, { archived: true }))).toEqual([200, undefined]);
    expect(outcomeOf(await change(second, { archived: false }))).toEqual([200, undefined]);
  });

  test('null is never taken, and members alone make a key', async () => {
    await made({ place: 3 });
    expect(outcomeOf(await create({ place: 3 }))).toEqual(TAKEN('place'));
    expect(outcomeOf(await create({ place: 3, shelf: other }))).toEqual([201, undefined]);
    expect(outcomeOf(await create({}))).toEqual([201, undefined]);
    expect(outcomeOf(await create({}))).toEqual([201, undefined]);
  });

  test('two at once give one record', async () => {
    const answers = await Promise.all(['Dune', 'dune', 'DUNE', 'dUNE'].map((title) => create({ title })));
    expect(answers.map(({ status }) => status).sort()).toEqual([201, 409, 409, 409]);
  });

  test('a batch reports the operation and the member', async () => {
    const operations = ['Ulysses', 'ulysses'].map((title) => ({
      op: 'create',
      collection: 'books',
      data: { title, shelf },
    }));
    const answer = await ann.client.post('/api/batch', { operations });
    expect(outcomeOf(answer)).toEqual([409, 'unique_violation', '/operations/1/data/title unique_violation']);
    expect((await ann.client.get('/api/books?title=Ulysses')).body.data).toEqual([]);
  });

  describe('a dry run', () => {
    const rehearse = async (data: object) =>
      (await ann.client.post('/api/books/can', { action: 'create', data: { shelf, ...data } })).body.data;
    test('reports a taken value', async () => {
      await made({ code: 'Dracula' });
      expect(await rehearse({ code: 'DRACULA' })).toMatchObject({ allowed: false, code: 'unique_violation' });
    });
    test('does not reveal a value that the caller may not read', async () => {
      await made({ secret: 'known to none' });
      expect(await rehearse({ secret: 'known to none' })).toEqual({ allowed: true });
      expect(outcomeOf(await create({ secret: 'known to none' }))).toEqual(TAKEN('secret'));
    });
  });
}
