/**
 * `distribute` of the file → the tenant layout of each collection. A relation or unique value that
 * several machines would have to enforce together is an error.
 */
import { nearest } from '../../../grammar/suggest.ts';
import { scalarOf } from '../../policy/scalar-types.ts';
import { FIELD_KINDS } from '../fields/index.ts';
import type { DocumentPath, Finding, Report } from '../file/issue.ts';
import type { CollectionShape, SchemaFile } from '../file/shape.ts';
import type { Bare, WithoutTenantLayout } from './collections.ts';
import {
  type BelongsTo,
  type Field,
  isTenant,
  isUniqueMember,
  type Relation,
  type TenantKey,
  type TenantLayout,
  type UniqueMember,
  withinOf,
} from './model.ts';

interface TenantLayoutContext {
  readonly file: SchemaFile;
  readonly report: Report;
  /** Names with a wrong declaration; the error is reported there. */
  readonly broken: ReadonlySet<string>;
}
type TenantKeyShape = Exclude<CollectionShape['distribute'], 'reference' | undefined>;

export function readTenantLayouts(
  declared: ReadonlyMap<string, WithoutTenantLayout>,
  context: TenantLayoutContext,
): ReadonlyMap<string, Bare> {
  const reader = new TenantLayoutReader(declared, context);
  const collections = new Map(
    [...declared].map(([name, collection]) => [name, { ...collection, tenantLayout: reader.read(collection) }]),
  );
  const check = new TenantLayoutCheck(collections, context, reader.unplaced);
  for (const collection of collections.values()) check.check(collection);
  return collections;
}

class TenantLayoutReader {
  /** Collections whose `distribute` is wrong. */
  readonly unplaced = new Set<string>();
  readonly #declared: ReadonlyMap<string, WithoutTenantLayout>;
  readonly #context: TenantLayoutContext;
  readonly #isUsed: boolean;

  constructor(declared: ReadonlyMap<string, WithoutTenantLayout>, context: TenantLayoutContext) {
    this.#declared = declared;
    this.#context = context;
    this.#isUsed = [...declared.keys()].some((name) => this.#shapeOf(name) !== undefined);
  }

  read(collection: WithoutTenantLayout): TenantLayout | null {
    const { name, kind } = collection;
    const shape = this.#shapeOf(name);
    if (kind !== 'plain' && typeof shape === 'object') {
      const message = `\`${name}\` are on every machine once a collection is distributed; remove \`distribute\``;
      this.#context.report({ code: 'distribute_built_in', message, path: distributePath(name), at: 'key' });
    }
    if (this.#isReference(name)) return { kind: 'reference' };
    return typeof shape === 'object' ? this.#tenantKeyOf(collection, shape) : null;
  }

  #shapeOf(name: string): CollectionShape['distribute'] {
    return this.#context.file.collections?.[name]?.distribute;
  }

  /** Every collection may refer to users and files. */
  #isReference(name: string): boolean {
    return this.#declared.get(name)?.kind === 'plain' ? this.#shapeOf(name) === 'reference' : this.#isUsed;
  }

  /** Null if an error is reported. */
  #tenantKeyOf(collection: WithoutTenantLayout, { by, lists = 'routed' }: TenantKeyShape): TenantKey | null {
    const relation = this.#tenantOf(collection, by);
    if (relation === undefined) {
      this.unplaced.add(collection.name);
      return null;
    }
    const path = [...distributePath(collection.name), 'by'];
    if (!relation.required) {
      const message =
        `a record of \`${collection.name}\` without \`${by}\` would have no machine; ` +
        `add \`required: true\` to the relation \`${by}\``;
      this.#context.report({ code: 'key_optional', message, path });
    }
    if (!this.#isReference(relation.collection)) {
      const message =
        `\`${by}\` leads to \`${relation.collection}\`, whose records are not on every machine; ` +
        `say \`distribute: reference\` in \`${relation.collection}\``;
      this.#context.report({ code: 'key_not_reference', message, path });
    }
    return { kind: 'by', by, column: relation.column, lists };
  }

  #tenantOf(collection: WithoutTenantLayout, by: string): BelongsTo | undefined {
    const { name, fields, relations } = collection;
    const { broken, report } = this.#context;
    const found = relations.get(by);
    if (found?.kind === 'belongs_to') return found;
    if (broken.has(by)) return undefined;
    const near = nearest(by, referencesByName(collection).keys());
    const hint = near === undefined ? 'expected a required belongs_to' : `did you mean \`${near}\`?`;
    const isOther = found !== undefined || fields.has(by);
    const message = isOther
      ? `\`${name}.${by}\` is not a belongs_to; ${hint}`
      : `\`${name}\` has no relation \`${by}\`; ${hint}`;
    return report({ code: 'unknown_key_relation', message, path: [...distributePath(name), 'by'], replacement: near });
  }
}

const distributePath = (collection: string): DocumentPath => ['collections', collection, 'distribute'];

function referencesByName({ relations }: WithoutTenantLayout): ReadonlyMap<string, BelongsTo> {
  const found = [...relations.values()].filter((relation) => relation.kind === 'belongs_to');
  return new Map(found.map((relation) => [relation.name, relation]));
}

/** Checks that relations and unique values stay on one machine. */
class TenantLayoutCheck {
  readonly #collections: ReadonlyMap<string, Bare>;
  readonly #context: TenantLayoutContext;
  readonly #unplaced: ReadonlySet<string>;

  constructor(collections: ReadonlyMap<string, Bare>, context: TenantLayoutContext, unplaced: ReadonlySet<string>) {
    this.#collections = collections;
    this.#context = context;
    this.#unplaced = unplaced;
  }

  check(collection: Bare): void {
    for (const relation of collection.relations.values()) this.#checkRelation(collection, relation);
    for (const member of [...collection.fields.values(), ...referencesByName(collection).values()])
      this.#checkUnique(collection, member);
  }

  #checkRelation(collection: Bare, relation: Relation): void {
    const finding = this.#crossing(collection, relation);
    // The tenant key has stricter checks, which report the error.
    if (finding === undefined || isTenant(collection, relation.name)) return;
    const path = ['collections', collection.name, 'relations', relation.name];
    this.#context.report({ ...finding, path, at: 'key' });
  }

  /** The error if no constraint and no statement on one machine can follow the relation. */
  #crossing(from: Bare, relation: Relation): Misplaced | undefined {
    const to = this.#collections.get(relation.collection)!;
    if ([from, to].some(({ name }) => this.#unplaced.has(name))) return undefined;
    const [here, there] = [from.tenantLayout?.kind, to.tenantLayout?.kind];
    if (here !== 'by' && there === 'by') return intoTenants(from, relation);
    // The belongs_to of the other side reports the error.
    if (relation.kind === 'has_one' || relation.kind === 'has_many') return undefined;
    if (here === undefined || there === 'reference') return undefined;
    if (there === undefined) return toOneMachine(from, to);
    return this.#tenantsOf(from) === this.#tenantsOf(to) ? undefined : betweenKeys(from, to);
  }

  #tenantsOf({ relations, tenantLayout }: Bare): string | undefined {
    return tenantLayout?.kind === 'by' ? relations.get(tenantLayout.by)?.collection : undefined;
  }

  #checkUnique(collection: Bare, member: NamedMember): void {
    const { name, relations, tenantLayout } = collection;
    const path = ['collections', name, collection.fields.has(member.name) ? 'fields' : 'relations', member.name];
    const at = [...path, 'unique'];
    const within = withinOf(member).flatMap((name) => this.#leaderOf(collection, member, { name, path: at }) ?? []);
    const isWhole = within.length === withinOf(member).length;
    if (tenantLayout?.kind !== 'by' || !isUniqueMember(member) || !isWhole) return;
    const { by } = tenantLayout;
    // Records that belong to a record of a tenant have the same tenant.
    const isOfTenant = [...within, relations.get(member.name)].some(
      (leader) =>
        leader !== undefined &&
        'kind' in leader &&
        leader.kind === 'belongs_to' &&
        (leader.name === by || this.#hasTenants(leader.collection)),
    );
    if (isOfTenant) return;
    const named = within.map(({ name }) => `\`${name}\``).join(' and ');
    const where = named === '' ? 'in the whole collection' : `within ${named}`;
    const isMapping = member.uniqueKey !== undefined;
    const advice = isMapping ? `add \`${by}\` to \`within\`` : `say \`unique: within_${by}\``;
    const message = `\`${member.name}\` cannot be unique ${where}: only the records of one \`${by}\` are on one machine; ${advice}`;
    this.#context.report({
      code: 'unique_across',
      message,
      path: at,
      replacement: isMapping ? undefined : `within_${by}`,
    });
  }

  #hasTenants(collection: string): boolean {
    return this.#collections.get(collection)?.tenantLayout?.kind === 'by';
  }

  /** The member that another one is unique within. */
  #leaderOf(collection: Bare, member: NamedMember, { name: within, path }: NamedLeader): Field | BelongsTo | undefined {
    const { report, broken } = this.#context;
    const isMapping = member.uniqueKey !== undefined;
    const field = isMapping ? collection.fields.get(within) : undefined;
    const found = field ?? collection.relations.get(within);
    const leader = found !== undefined && 'required' in found ? found : undefined;
    if (leader?.required && within !== member.name && isComparable(leader)) return leader;
    if (found === undefined && broken.has(within)) return undefined;
    const known = [...referencesByName(collection).keys(), ...(isMapping ? collection.fields.keys() : [])];
    const near = found === undefined ? nearest(within, known) : undefined;
    const spelled = near === undefined || isMapping ? near : `within_${near}`;
    const hint = spelled === undefined ? '' : `; did you mean \`${spelled}\`?`;
    const message = `${notWithin(collection, member, within)}${hint}`;
    const at = isMapping ? [...path, 'within'] : path;
    return report({ code: 'unique_within', message, path: at, replacement: isMapping ? undefined : spelled });
  }
}

type NamedMember = UniqueMember & Pick<BelongsTo, 'name'>;
interface NamedLeader {
  readonly name: string;
  /** That of `unique`. */
  readonly path: DocumentPath;
}

const isComparable = (member: Field | BelongsTo): boolean =>
  'kind' in member || (scalarOf(member.type).sorts !== false && FIELD_KINDS[member.type].isIndexable !== false);
type Misplaced = Pick<Finding, 'code' | 'message'>;

function intoTenants(from: Bare, { name, kind, collection, ...relation }: Relation): Misplaced {
  const what = `\`${from.name}.${name}\` leads from records of no tenant to \`${collection}\`, which are distributed`;
  const advice =
    'via' in relation
      ? `remove it: \`GET /api/${collection}?${relation.via}=<id>\` lists them`
      : `say \`distribute: { by: … }\` in \`${from.name}\` too, or remove the relation`;
  return { code: 'reference_to_distributed', message: `${what}; ${advice}` };
}

const toOneMachine = (from: Bare, to: Bare): Misplaced => ({
  code: 'not_co_located',
  message:
    `the records of \`${to.name}\` are on one machine, where those of \`${from.name}\` are not; ` +
    `say \`distribute: reference\` in \`${to.name}\``,
});

const betweenKeys = (from: Bare, to: Bare): Misplaced => ({
  code: 'not_co_located',
  message:
    `\`${from.name}\` and \`${to.name}\` are distributed by different collections, so a record and the one that it ` +
    'leads to can be on different machines; distribute both by one, or one of them as `reference`',
});

function notWithin({ name, fields, relations }: Bare, member: NamedMember, within: string): string {
  const field = member.uniqueKey === undefined ? undefined : fields.get(within);
  const found = relations.get(within);
  if (member.name === within) return `\`${within}\` cannot be unique within itself; expected \`unique: true\``;
  if (field !== undefined && !isComparable(field)) return `an index does not compare values of \`${within}\``;
  if (field !== undefined) return noValueText(field, 'field');
  const kinds = member.uniqueKey === undefined ? 'relation' : 'field or relation';
  if (found === undefined) return `\`${name}\` has no ${kinds} \`${within}\``;
  if (found.kind !== 'belongs_to') return `\`${name}.${within}\` is not a belongs_to`;
  return noValueText(found, 'relation');
}

type Leader = Pick<Field, 'name' | 'needed'>;

/** A member that is needed and not required is of a table that another program owns, or leads to one. */
const noValueText = ({ name, needed }: Leader, kind: string): string =>
  needed
    ? `records without \`${name}\` could share a value, and another program may write some; remove \`within\``
    : `records without \`${name}\` could share a value; add \`required: true\` to the ${kind} \`${name}\``;
