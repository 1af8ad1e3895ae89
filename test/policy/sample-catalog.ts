/** The schema of language.md, as the policy compiler sees it. */
import { compilePolicy } from '../../src/policy/compile.ts';
import { type Condition, STORED_ROOTS } from '../../src/policy/condition.ts';
import { lower } from '../../src/policy/lower/lower.ts';
import { bind, requestPlanOf } from '../../src/policy/lower/specialise.ts';
import type {
  Catalog,
  CatalogCollection,
  CatalogField,
  CatalogRelation,
  PolicyRequest,
  ScalarType,
} from '../../src/policy/types.ts';

type FieldSpec = readonly [type: ScalarType, given?: Partial<CatalogField>];

function field(name: string, [type, given]: FieldSpec): CatalogField {
  return { name, type, required: false, column: name, unique: false, index: false, ...given };
}

interface Spec {
  readonly fields: Readonly<Record<string, FieldSpec>>;
  readonly relations?: readonly CatalogRelation[];
}

const STAMP: FieldSpec = ['datetime', { required: true }];

function collection(name: string, { fields, relations = [] }: Spec): CatalogCollection {
  const all = { ...fields, created_at: STAMP, updated_at: STAMP };
  return {
    name,
    table: name,
    fields: new Map(Object.entries(all).map(([key, spec]) => [key, field(key, spec)])),
    relations: new Map(relations.map((relation) => [relation.name, relation])),
  };
}

const belongsTo = (name: string, to: string, required = false): CatalogRelation => ({
  kind: 'belongs_to',
  name,
  collection: to,
  required,
  column: `${name}_id`,
});
const hasMany = (name: string, to: string, via: string): CatalogRelation => ({
  kind: 'has_many',
  name,
  collection: to,
  via,
  viaColumn: `${via}_id`,
});

const COLLECTIONS: readonly CatalogCollection[] = [
  collection('users', {
    fields: {
      email: ['string', { required: true, unique: true }],
      email_verified: ['bool', { required: true }],
      department: ['string'],
    },
    relations: [belongsTo('home', 'teams'), hasMany('memberships', 'memberships', 'user')],
  }),
  collection('teams', {
    fields: { name: ['string', { required: true, unique: true }] },
    relations: [
      hasMany('memberships', 'memberships', 'team'),
      belongsTo('lead', 'users'),
      belongsTo('founder', 'users'),
      belongsTo('parent', 'teams'),
    ],
  }),
  collection('memberships', {
    fields: { role: ['string', { required: true, enum: ['owner', 'editor', 'reader'] }], note: ['string'] },
    relations: [belongsTo('team', 'teams', true), belongsTo('user', 'users', true)],
  }),
  collection('tags', { fields: { label: ['string', { required: true }] } }),
  collection('covers', {
    fields: { caption: ['string'] },
    relations: [belongsTo('document', 'documents', true)],
  }),
  collection('documents', {
    fields: {
      title: ['string', { required: true, search: true }],
      status: ['string', { required: true, enum: ['draft', 'published'] }],
      score: ['int'],
      rating: ['float'],
      pinned: ['bool', { required: true }],
      labels: ['string[]'],
      due_at: ['datetime'],
      at: ['point'],
    },
    relations: [
      belongsTo('owner', 'users', true),
      belongsTo('team', 'teams'),
      {
        kind: 'many_to_many',
        name: 'tags',
        collection: 'tags',
        linkTable: 'documents_tags',
        sourceColumn: 'document_id',
        targetColumn: 'tag_id',
      },
      { kind: 'has_one', name: 'cover', collection: 'covers', via: 'document', viaColumn: 'document_id' },
    ],
  }),
];

export const SAMPLE: Catalog = {
  collections: new Map(COLLECTIONS.map((each) => [each.name, each])),
  roles: new Map([
    ['admin', {}],
    ['member', {}],
  ]),
};

/** The residual of a policy over documents. */
export function conditionOf(text: string, request: PolicyRequest): Condition {
  const { checked } = compilePolicy(text, { catalog: SAMPLE, collection: 'documents', action: 'list' });
  const plan = requestPlanOf(checked);
  return lower(plan.tree, { catalog: SAMPLE, signature: bind(plan, request), roots: STORED_ROOTS });
}
