// @module-tag long
/** The text of the served schema: for admins, with the place of each condition, and never with a secret. */
import { expect, test } from 'vitest';
import { describeOnOne } from '../support/service.ts';

const SCHEMA = `
roles: [admin, member]
register: { roles: [member] }
conditions:
  'is_own(note: notes)': 'note.owner = @request.auth.id'
collections:
  notes:
    fields:
      text: string
      price: { type: int, access: { read: [{ roles: [admin] }, { when: '@record.text = "it''s"' }] } }
    relations: { owner: { kind: belongs_to, collection: users, default: '@request.auth.id' } }
    access:
      view: is_own(@record)
      create: "@record.owner = @request.auth.id"
      update:
        - roles: [admin]
        - when: >
            @record.owner = @request.auth.id
            and @record.text != "x"
      delete: [{ roles: [member], when: is_own(@record) }]
`;
const SECRET = "oauth: { example: { issuer: 'https://id.example', client_id: a, client_secret: hush } }\n";

interface ServedRule {
  readonly when?: string;
  readonly place?: { readonly offset: number; readonly length: number };
}

describeOnOne(
  'the served schema',
  (service) => {
    test('admins read the file, and the place of each condition that it holds', async () => {
      const [root, ann] = [await service.user('admin'), await service.user()];
      const { data } = (await root.client.get('/api/_schema')).body;
      expect([data.text, data.can_save]).toEqual([SCHEMA, false]);
      const notes = data.collections.find(({ name }: { name: string }) => name === 'notes');
      const price = notes.fields.find(({ name }: { name: string }) => name === 'price');
      const placed = (rules: readonly ServedRule[]) =>
        rules.map(({ place }) => place && SCHEMA.slice(place.offset, place.offset + place.length));
      expect(placed(notes.rules.list)).toEqual(['is_own(@record)']);
      expect(placed(notes.rules.read)).toEqual(placed(notes.rules.list));
      expect(placed(notes.rules.create)).toEqual(['"@record.owner = @request.auth.id"']);
      expect(placed(notes.rules.update)).toEqual([
        undefined,
        expect.stringMatching(/^>\n[\s\S]*and @record.text != "x"$/),
      ]);
      expect(placed(notes.rules.delete)).toEqual(['is_own(@record)']);
      expect(placed(price.rules.read)).toEqual([undefined, `'@record.text = "it''s"'`]);
      expect(Object.keys(price.rules)).toEqual(['read']);
      const own = await ann.client.get('/api/_schema');
      expect(Object.keys(own.body.data)).toEqual(['collections', 'me', 'catalog']);
      expect(own.text).not.toMatch(/is_own|"place"|can_save/);
    });
  },
  { schema: SCHEMA },
);

describeOnOne(
  'a served schema with a secret',
  (service) => {
    test('the file is left out, with its places', async () => {
      const root = await service.user('admin');
      const { body, text } = await root.client.get('/api/_schema');
      expect(body.data.can_save).toBe(false);
      expect(Object.keys(body.data)).toEqual(['collections', 'me', 'catalog', 'roles', 'can_save']);
      expect(text).not.toMatch(/hush|"place"/);
      expect(text).toContain('is_own(@record)');
    });
  },
  { schema: SCHEMA + SECRET },
);
