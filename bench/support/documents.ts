/** The schema and the policies that the benches of the policy compiler speak of. */
import type { Catalog, CatalogField, CatalogRelation, ScalarType } from '../../src/policy/types.ts';

export const COLLECTION = 'documents';

/** Four clauses: a role, a list, an instant, an owner. */
export const P3 =
  '@request.auth.roles contains "admin" or @record.status in ["published", "review"] and @record.due_at < @now and @record.owner = @request.auth.id';

const field = (name: string, type: ScalarType, required: boolean): [string, CatalogField] => [
  name,
  { name, type, required, column: name, unique: false, index: true },
];
const belongsTo = (name: string, collection: string, required: boolean): [string, CatalogRelation] => [
  name,
  { kind: 'belongs_to', name, collection, required, column: `${name}_id` },
];

export const catalog: Catalog = {
  roles: new Map([
    ['admin', {}],
    ['editor', {}],
    ['member', {}],
  ]),
  collections: new Map([
    [
      'users',
      {
        name: 'users',
        table: 'users',
        fields: new Map([field('email', 'string', true), field('email_verified', 'bool', true)]),
        relations: new Map<string, CatalogRelation>([
          [
            'memberships',
            { kind: 'has_many', name: 'memberships', collection: 'memberships', via: 'user', viaColumn: 'user_id' },
          ],
        ]),
      },
    ],
    [
      'teams',
      {
        name: 'teams',
        table: 'teams',
        fields: new Map([field('name', 'string', true), field('open', 'bool', true)]),
        relations: new Map<string, CatalogRelation>([
          belongsTo('lead', 'users', false),
          belongsTo('parent', 'teams', false),
          [
            'memberships',
            { kind: 'has_many', name: 'memberships', collection: 'memberships', via: 'team', viaColumn: 'team_id' },
          ],
        ]),
      },
    ],
    [
      'memberships',
      {
        name: 'memberships',
        table: 'memberships',
        fields: new Map([field('role', 'string', true)]),
        relations: new Map([belongsTo('team', 'teams', true), belongsTo('user', 'users', true)]),
      },
    ],
    ['tags', { name: 'tags', table: 'tags', fields: new Map([field('label', 'string', true)]), relations: new Map() }],
    [
      COLLECTION,
      {
        name: COLLECTION,
        table: COLLECTION,
        fields: new Map([
          ['title', { ...field('title', 'string', true)[1], search: true }],
          field('status', 'string', true),
          field('score', 'int', false),
          field('rating', 'float', false),
          field('pinned', 'bool', true),
          field('due_at', 'datetime', false),
          field('created_at', 'datetime', true),
        ]),
        relations: new Map<string, CatalogRelation>([
          belongsTo('owner', 'users', false),
          belongsTo('team', 'teams', false),
          [
            'tags',
            {
              kind: 'many_to_many',
              name: 'tags',
              collection: 'tags',
              linkTable: 'documents_tags',
              sourceColumn: 'document_id',
              targetColumn: 'tag_id',
            },
          ],
        ]),
      },
    ],
  ]),
};
