/** The words of a list's query string, and rules for lists that need a key which no plain list takes. */
import { describe, expect, it } from 'vitest';
import { openapiOf } from '../../src/describe/openapi-document.ts';
import { routes } from '../../src/routes/index.ts';
import { parseSchema } from '../../src/schema/load.ts';
import { filterKeysOf } from '../../src/schema/model/filter-keys.ts';
import { LIST_WORDS } from '../../src/schema/model/list-parameters.ts';

const schemaOf = (access: string): string => `conditions:
  'is_public(doc: docs)': 'doc.public'
  'has_labels(doc: docs)': 'count(doc.labels) > 2'
  'has_label(doc: docs)': 'any(doc.labels as l, true)'
collections:
  labels: { fields: { name: string } }
  docs:
    fields: { title: { type: string, index: true }, public: bool }
    relations:
      owner: { kind: belongs_to, collection: users }
      labels: { kind: many_to_many, collection: labels }
    access:
      ${access}
`;

const warningsOf = (access: string): readonly string[] =>
  parseSchema(schemaOf(access))
    .issues.filter(({ code }) => code === 'list_never_met')
    .map(({ message }) => message);

describe('a rule for lists', () => {
  it.each([
    ['an equality', `list: '@request.query.code = "x"'`],
    ['one part of an and', `list: '@record.public and @request.query.code = @record.title'`],
    ['every alternative', `list: '@record.title = @request.query.code or @record.title in @request.query.code'`],
    ['a negation', `list: 'not (@request.query.code = "x")'`],
    ['a part of a text', `list: '@request.query.code != "" and @record.title contains @request.query.code'`],
    ['inside a quantifier', `list: 'any(@record.labels as l, l.name = @request.query.code)'`],
    ['an inequality', `list: '@request.query.code is not null'`],
    ['a rule of a list', `list: [{ when: '@request.query.code = "x"' }]`],
    ['a walk that begins at it', `list: 'is_public(@request.query.code)'`],
    ['a count that begins at it', `list: 'has_labels(@request.query.code)'`],
    ['a quantifier that begins at it', `list: 'has_label(@request.query.code)'`],
    ['the list half of a view', `view: '@request.query.code = @record.title'`],
  ])('the checker reports a rule that needs a key without a filter: %s', (_, access) => {
    const [message, ...more] = warningsOf(access);
    expect(more).toEqual([]);
    expect(message).toContain('`code`, which is not a filter of `docs`');
    expect(message).toContain('only POST /api/docs/query can meet it');
  });

  it('the warning names all such keys', () => {
    expect(warningsOf(`list: '@request.query.a = "x" and @request.query.b = "y"'`)[0]).toContain('`a` and `b`');
  });

  it.each([
    ['a field', `list: '@request.query.title = @record.title'`],
    ['an id', `list: '@request.query.id = @record.id'`],
    ['a belongs_to', `list: '@request.query.owner = @request.auth.id'`],
    ['its other name', `list: '@request.query.owner_id = @request.auth.id'`],
    ['a to-many', `list: '@record.labels contains @request.query.labels_any'`],
    ['a word of lists', `list: '@request.query.limit = "5"'`],
    ['one of two ways', `list: '@record.public or @request.query.code = "x"'`],
    ['its absence', `list: '@request.query.code is null'`],
    ['nothing of a relation', `list: 'none(@record.labels as l, l.name = @request.query.code)'`],
    ['a rule for one record', `read: '@request.query.code = "x"'`],
    ['a rule that is never true at all', `list: 'false and @request.query.code = "x"'`],
  ])('the checker accepts a rule that a plain list can meet: %s', (_, access) => {
    expect(warningsOf(access)).toEqual([]);
  });
});

interface ListPaths {
  readonly paths: { readonly '/api/docs': { readonly get: { readonly parameters: readonly Parameter[] } } };
}
interface Parameter {
  readonly name: string;
  readonly in: string;
}

describe('a word of lists', () => {
  it.each(LIST_WORDS)('no field and no relation may have the name: %s', (word) => {
    const { issues } = parseSchema(`collections:
  docs:
    fields: { ${word}: string }
  notes:
    relations: { ${word}: { kind: belongs_to, collection: docs } }
`);
    expect(issues.filter(({ severity }) => severity === 'error').map(({ code }) => code)).toEqual([
      'reserved_name',
      'reserved_name',
    ]);
  });

  it('the OpenAPI document lists the words and the filters of a list as its parameters', () => {
    const schema = parseSchema(schemaOf(`list: 'true'`)).schema!;
    const { paths } = openapiOf(schema, routes, '1') as unknown as ListPaths;
    const keys = paths['/api/docs'].get.parameters.flatMap(({ name, in: where }) => (where === 'query' ? [name] : []));
    const filters = [...filterKeysOf(schema.collections.get('docs')!).keys()];
    expect(keys.toSorted()).toEqual([...LIST_WORDS, 'params', ...filters].toSorted());
  });
});
