import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { typescriptOf } from '../../src/describe/typescript.ts';
import { parseSchema } from '../../src/schema/load.ts';
import { indexesOf, uniqueColumns } from '../../src/schema/model/indexes.ts';
import type { Schema } from '../../src/schema/model/model.ts';
import { DISTRIBUTION_CASES } from './distribution-cases.ts';

function loaded(text: string): Schema {
  const { schema, issues } = parseSchema(text);
  expect(issues).toEqual([]);
  return schema!;
}

const DISTRIBUTED = loaded(`collections:
  teams: { distribute: reference, fields: { name: { type: string, unique: true } } }
  labels: {}
  documents:
    distribute: { by: team }
    fields:
      slug: { type: string, unique: within_team }
      status: { type: string, index: true }
    relations:
      owner: { kind: belongs_to, collection: users, required: true }
      team: { kind: belongs_to, collection: teams, required: true }
      cover: { kind: has_one, collection: covers, via: document }
  covers:
    distribute: { by: team, lists: filtered }
    fields: { place: { type: int, unique: within_document } }
    relations:
      team: { kind: belongs_to, collection: teams, required: true, unique: true }
      document: { kind: belongs_to, collection: documents, required: true }
`);

const collection = (name: string, { collections }: Schema = DISTRIBUTED) => collections.get(name)!;

describe('distribute', () => {
  it('the schema places the records of each collection', () => {
    const places = [...DISTRIBUTED.collections.values()].map(({ name, tenantLayout }) => [name, tenantLayout]);
    expect(Object.fromEntries(places)).toEqual({
      users: { kind: 'reference' },
      files: { kind: 'reference' },
      teams: { kind: 'reference' },
      labels: null,
      documents: { kind: 'by', by: 'team', column: 'team_id', lists: 'routed' },
      covers: { kind: 'by', by: 'team', column: 'team_id', lists: 'filtered' },
    });
  });

  it('an undistributed schema keeps every collection on one machine', () => {
    const { collections } = loaded('collections: { a: { fields: { n: int } } }');
    expect([...collections.values()].map(({ tenantLayout }) => tenantLayout)).toEqual([null, null, null]);
  });

  it('keys and indexes begin with the tenant', () => {
    expect(uniqueColumns(collection('documents'))).toEqual([['team_id', 'slug']]);
    expect(uniqueColumns(collection('covers'))).toEqual([
      ['team_id', 'document_id', 'place'],
      ['team_id'],
      ['team_id', 'document_id'],
    ]);
    expect(indexesOf(collection('documents'), DISTRIBUTED).map(({ columns, serves }) => [serves, ...columns])).toEqual([
      ['slug', 'team_id', 'slug'],
      ['created_at', 'team_id', 'created_at', 'id'],
      ['status', 'team_id', 'status', 'id'],
      ['owner_id', 'team_id', 'owner_id', 'id'],
    ]);
  });

  it('updates leave the tenant out', () => {
    const types = typescriptOf(DISTRIBUTED);
    expect(types).toMatch(/interface DocumentRecordCreate \{[^}]*team: Id/);
    expect(types).toMatch(/interface DocumentRecordUpdate \{[^}]*owner\?: Id/);
    expect(types).not.toMatch(/interface DocumentRecordUpdate \{[^}]*team/);
  });
});

describe('unique within a relation', () => {
  const schema = loaded(`collections:
  books: {}
  pages:
    fields: { number: { type: int, unique: within_book }, title: { type: string, unique: within_book } }
    relations:
      book: { kind: belongs_to, collection: books, required: true }
      next: { kind: belongs_to, collection: pages, unique: within_book }
`);

  it('a value unique within a relation has a key of both columns', () => {
    const pages = collection('pages', schema);
    expect(pages.fields.get('number')).toMatchObject({ unique: false, uniqueWithin: 'book' });
    expect(uniqueColumns(pages)).toEqual([
      ['book_id', 'number'],
      ['book_id', 'title'],
      ['book_id', 'next_id'],
    ]);
  });

  it('each reference keeps its index, and a string stays short enough for its own', () => {
    const pages = collection('pages', schema);
    const plain = indexesOf(pages, schema).filter(({ unique }) => !unique);
    expect(plain.map(({ columns }) => columns)).toEqual([
      ['created_at', 'id'],
      ['book_id', 'id'],
      ['next_id', 'id'],
    ]);
    expect(pages.fields.get('title')).toMatchObject({ max: 675 });
  });

  it('a has_one makes its reference unique in the whole collection', () => {
    const { collections } = loaded(`collections:
  books: { relations: { cover: { kind: has_one, collection: covers, via: book } } }
  covers:
    relations:
      book: { kind: belongs_to, collection: books, unique: within_maker }
      maker: { kind: belongs_to, collection: users, required: true }
`);
    expect(uniqueColumns(collections.get('covers')!)).toEqual([['book_id']]);
  });
});

it('the reference lists every error', () => {
  const page = readFileSync(new URL('../../docs/schema.md', import.meta.url), 'utf8');
  const codes = new Set(DISTRIBUTION_CASES.flatMap((each) => each.codes));
  const shown = [...codes].filter((code) => page.includes(`| \`${code}\` |`));
  expect(shown).toEqual([
    'key_optional',
    'key_not_reference',
    'unknown_key_relation',
    'distribute_built_in',
    'unique_across',
    'reference_to_distributed',
    'not_co_located',
    'not_routed',
    'self_chosen',
    'default_missing',
  ]);
});

it('the sample of teams has no issues', () => {
  expect(parseSchema(readFileSync(new URL('../../docs/distributed.yaml', import.meta.url), 'utf8')).issues).toEqual([]);
});
