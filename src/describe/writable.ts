/**
 * The members that a write may and must hold, for the OpenAPI document and the TypeScript types; and the
 * names of generated types.
 */
import {
  type BelongsTo,
  type Collection,
  type Field,
  type HasOne,
  isTenant,
  type ManyToMany,
  type Relation,
} from '../schema/model/model.ts';
import { singularOf } from './singular.ts';

/** A field or a relation that a body may hold. */
export type Writable =
  | { readonly name: string; readonly kind: 'field'; readonly field: Field; readonly required: boolean }
  | {
      readonly name: string;
      readonly kind: 'reference';
      readonly relation: BelongsTo | HasOne;
      readonly required: boolean;
      readonly nullable: boolean;
    }
  | { readonly name: string; readonly kind: 'members'; readonly relation: ManyToMany; readonly required: false };

export function writablesOf({ fields, relations }: Collection): readonly Writable[] {
  const ofFields = [...fields.values()].filter(({ readOnly }) => !readOnly);
  return [
    ...ofFields.map(
      (field): Writable => ({
        name: field.name,
        kind: 'field',
        field,
        required: field.needed && field.default === undefined,
      }),
    ),
    ...[...relations.values()].flatMap(writableRelation),
  ];
}

/** The members that an update may hold. */
export const changeablesOf = (collection: Collection): readonly Writable[] =>
  writablesOf(collection).filter(({ name }) => !isTenant(collection, name));

function writableRelation(relation: Relation): readonly Writable[] {
  const { name } = relation;
  switch (relation.kind) {
    case 'belongs_to': {
      if (relation.readOnly) return [];
      const required = relation.needed && relation.default === undefined;
      return [{ name, kind: 'reference', relation, required, nullable: !relation.needed }];
    }
    case 'has_one':
      if (relation.readOnly) return [];
      return [{ name, kind: 'reference', relation, required: false, nullable: true }];
    case 'many_to_many':
      return [{ name, kind: 'members', relation, required: false }];
    case 'has_many':
      return [];
  }
}

/** Relations whose id is a member of the record. */
export const referencesOf = ({ relations }: Collection): readonly (BelongsTo | HasOne)[] =>
  [...relations.values()].filter((relation) => relation.kind === 'belongs_to' || relation.kind === 'has_one');

/** True if a record can come without the member: its rules can hide it from readers of the record. */
export const canBeHidden = ({ memberAccess }: Collection, name: string): boolean =>
  memberAccess.get(name)?.read !== undefined;

/** Names of generated types that do not come from a collection. */
export const OTHER_TYPES: readonly string[] = [
  'ErrorCode',
  'Id',
  'IdOnly',
  'ApiKey',
  'GuestTokens',
  'SignInChallenge',
  'Passkey',
  'SignInProvider',
  'UserSession',
  'AuditEvent',
  'HistoryEntry',
  'AuthAccount',
  'Invitation',
  'DateTime',
  'MemberChange',
  'BatchOperation',
  'BatchResult',
  'MemberCapabilities',
  'CollectionCapabilities',
  'Rehearsal',
  'RehearsalAnswer',
  'ExplainRequest',
  'ExplainedLeaf',
  'ExplainedRule',
  'ExplainedCheck',
  'ExplainedMember',
  'Explanation',
  'ServedSchema',
  'Page',
  'AggregatePage',
  'QueryExpand',
  'QueryPage',
  'Role',
  'Collections',
  'Problem',
  'Tokens',
  'Session',
];
const SUFFIXES = ['', 'Create', 'Update', 'Filters', 'Selection'] as const;

/** Types of one or two words that every program has, in browsers too (lib.es and lib.dom of TypeScript). */
const GLOBAL_TYPES: ReadonlySet<string> = new Set(
  `
  Algorithm Animatable Animation Array Atomics Attr Audio Awaited Blob Body Boolean Cache Capitalize Clipboard Comment Console Credential Crypto Date
  Disposable Document Element Error Event Exclude External Extract File Float Function Gamepad Generator Geolocation Headers Highlight History
  Image Infinity Int Iterable Iterator Keyframe Location Lock Lowercase Map Math Navigation Navigator Node Notification Number Object Omit
  Option Parameters Partial Path Pbkdf Performance Permissions Pick Plugin Promise Proxy Range Readonly Record Report Request Required
  Response Sanitizer Scheduler Screen Selection Set Slottable Storage String Symbol Text Touch Transferable Transformer Uint Uncapitalize Uppercase
  Window Worker Worklet CacheStorage CustomEvent ErrorEvent FileList FileReader FormData MediaList MediaSource MessageEvent PaymentAddress
  PaymentRequest PaymentResponse PushSubscription ServiceWorker SharedWorker StyleSheet WebSocket
  `
    .trim()
    .split(/\s+/),
);

/**
 * Names of the types of records: `team_members` → `TeamMember`. Collections that would share a
 * name, or one that is taken, keep their plural (`TeamMembers`), or get `Record` where every program has the name (`FileRecord`); what
 * still clashes gets `Record` too, and at last the collection's own spelling. The order of the collections does not matter.
 */
export function typeNames(collections: Iterable<string>): ReadonlyMap<string, string> {
  const all = [...collections];
  const names = new Map<string, string>();
  const taken = new Set([...OTHER_TYPES, ...GLOBAL_TYPES]);
  for (const nameOf of NAMINGS) {
    const open = all.filter((collection) => !names.has(collection));
    const claims = new Map(open.map((collection) => [collection, typesNamed(nameOf(collection))]));
    const counts = Map.groupBy([...claims.values()].flat(), (type) => type);
    for (const [collection, types] of claims) {
      if (types.some((type) => taken.has(type) || counts.get(type)?.length !== 1)) continue;
      names.set(collection, nameOf(collection));
    }
    for (const name of names.values()) for (const type of typesNamed(name)) taken.add(type);
  }
  return names;
}

/** The names of a collection's types, from the name of its record type. */
const typesNamed = (name: string): readonly string[] => SUFFIXES.map((suffix) => name + suffix);

const pascalCase = (name: string): string =>
  name.replaceAll(/(?:^|_)([A-Za-z0-9])/g, (_, letter: string) => letter.toUpperCase());

const singularName = (collection: string): string =>
  pascalCase(collection.replace(/(?<![a-z])[a-z]+$/, (word) => singularOf(word)));

/** Names are tried in this order; the last one is always free. */
const NAMINGS: readonly ((collection: string) => string)[] = [
  singularName,
  (collection) =>
    GLOBAL_TYPES.has(singularName(collection)) ? `${singularName(collection)}Record` : pascalCase(collection),
  pascalCase,
  (collection) => `${pascalCase(collection)}Record`,
  (collection) => `Record_${collection}`,
];
