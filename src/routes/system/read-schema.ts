import type { Context } from 'koa';
import { inData, user } from '../../describe/collection-schemas.ts';
import { type Json, object, type Shape, TEXT } from '../../describe/operation.ts';
import type { App } from '../../http/app.ts';
import { type Admit, admitOf, callerOf } from '../../http/gate.ts';
import { partOfCatalog, writeCatalog } from '../../policy/request/catalog-document.ts';
import { ACTIONS, type Action, keyOf, type Policy } from '../../policy/types.ts';
import { Problem } from '../../problem.ts';
import { isAdministrator } from '../../records/write/role-changes.ts';
import { SCALAR_TYPES } from '../../schema/fields/index.ts';
import { versionOfText } from '../../schema/file/text-version.ts';
import { filterKeysOf } from '../../schema/model/filter-keys.ts';
import {
  type Collection,
  type Field,
  madeBy,
  type Relation,
  type Schema,
  takesWrite,
} from '../../schema/model/model.ts';
import { draftCatalogOf } from '../../schema/rules/draft-rules.ts';
import { route } from '../define-route.ts';
import { servedTextOf } from './served-text.ts';

const FLAG: Json = { type: 'boolean' };
const listSchema = (items: Json): Json => ({ type: 'array', items });
const PLACE = object({ offset: { type: 'integer' }, length: { type: 'integer' } });
const RULE = object({ roles: listSchema(TEXT), when: TEXT, place: PLACE }, ['when', 'place']);
const RULES = listSchema(RULE);

const BOUND: Json = { type: ['number', 'string'] };
const SERVED_DEFAULT: Json = {
  type: ['number', 'string', 'boolean'],
  description: 'A constant, or the name of a value such as `@now`.',
};
const FIELD = object(
  {
    name: TEXT,
    type: { type: 'string', enum: SCALAR_TYPES },
    required: FLAG,
    read_only: FLAG,
    unique: FLAG,
    search: FLAG,
    enum: listSchema({ type: ['number', 'string'] }),
    min: BOUND,
    max: BOUND,
    default: SERVED_DEFAULT,
    rules: object({ read: RULES, create: RULES, update: RULES }, ['read', 'create', 'update']),
  },
  ['enum', 'min', 'max', 'default', 'rules'],
);
const SERVED_RELATION = object(
  {
    name: TEXT,
    kind: { type: 'string', enum: ['belongs_to', 'has_one', 'has_many', 'many_to_many'] },
    collection: TEXT,
    required: FLAG,
    read_only: FLAG,
    default: SERVED_DEFAULT,
    via: { ...TEXT, description: 'The belongs_to of the other collection.' },
    rules: object({ read: RULES, create: RULES, update: RULES }, ['read', 'create', 'update']),
  },
  ['default', 'via', 'rules'],
);

const served: Shape = (scope) =>
  scope.define(
    'ServedSchema',
    object(
      {
        collections: listSchema(
          object(
            {
              name: TEXT,
              kind: { type: 'string', enum: ['plain', 'users', 'files'] },
              key: object({ type: TEXT, made_by: { type: 'string', enum: ['service', 'database', 'caller'] } }),
              title: { type: ['string', 'null'], description: 'The field that names a record to people.' },
              fields: listSchema(FIELD),
              relations: listSchema(SERVED_RELATION),
              can: object({ list: FLAG, create: FLAG }),
              changes: { ...FLAG, description: 'It has a feed of its changes.' },
              rules: object(Object.fromEntries(ACTIONS.map((action) => [action, RULES]))),
            },
            ['rules'],
          ),
        ),
        me: user(scope),
        roles: listSchema(object({ name: TEXT, includes: listSchema(TEXT), assigns: listSchema(TEXT) })),
        text: { ...TEXT, description: 'The file, without secrets; `place` of a rule is that of its condition in it.' },
        version: { ...TEXT, description: 'Of `text`, for a save.' },
        can_save: FLAG,
        catalog: {
          type: 'object',
          description:
            'The names that filters may use, for `bylaw/policy/browser`; for administrators, those of policies.',
        },
      },
      ['roles', 'text', 'version', 'can_save'],
    ),
  );

export const readServedSchema = route({
  method: 'GET',
  path: '/api/_schema',
  door: 'user',
  id: 'read_schema',
  summary: 'Read the collections that you may list or read',
  description: 'With their fields and relations. Rules and roles are for the role `admin`.',
  answers: { 200: { description: 'The schema, as far as it is yours.', shape: inData(served) } },
  problems: ['rate_limited'],
  async handle(ctx, app) {
    await app.auth.countQuestion(callerOf(ctx));
    ctx.set('Cache-Control', 'no-store');
    ctx.body = { data: await describeFor(ctx, app) };
  },
});

async function describeFor(ctx: Context, app: App) {
  const caller = callerOf(ctx);
  const admit = admitOf(ctx, app);
  const isAdmin = isAdministrator(caller.auth);
  const visible = [...app.schema.collections.values()].filter((each) => isAdmin || isVisible(admit, each));
  const names = new Set(visible.map(({ name }) => name));
  return {
    collections: visible.map((each) => ({
      ...describeCollection(each, names, isAdmin ? servedTextOf(app.schema) : undefined),
      can: { list: isEverAllowed(admit, each, 'list'), create: isEverAllowed(admit, each, 'create') },
    })),
    me: (await app.auth.accounts.me(caller)).user,
    catalog: describeCatalog(app, isAdmin ? undefined : names),
    ...(isAdmin && describeFile(app)),
  };
}

/** @param names of the collections that the caller sees. Left out: all, and what rules alone may use. */
function describeCatalog({ schema }: App, names?: ReadonlySet<string>) {
  const filtersOf = (name: string): readonly string[] => [...filterKeysOf(schema.collections.get(name)!).keys()];
  const catalog = draftCatalogOf(schema);
  return writeCatalog(names === undefined ? catalog : partOfCatalog(catalog, names), filtersOf);
}

const isVisible = (admit: Admit, collection: Collection): boolean =>
  isEverAllowed(admit, collection, 'list') || isEverAllowed(admit, collection, 'read');

/** False if no record could make a rule true. */
function isEverAllowed(admit: Admit, collection: Collection, action: Action): boolean {
  if (!takesWrite(collection, action) || (action === 'create' && collection.kind === 'users')) return false;
  try {
    admit(collection, action);
    return true;
  } catch (error) {
    if (error instanceof Problem && error.code === 'forbidden') return false;
    throw error;
  }
}

function describeFile({ schema, workshop }: App) {
  const { text } = servedTextOf(schema);
  return {
    roles: describeRoles(schema),
    ...(text !== undefined && { text, version: versionOfText(text) }),
    can_save: workshop !== undefined && text !== undefined,
  };
}

const describeRoles = ({ roles }: Schema) =>
  [...roles.values()].map(({ name, includes, assigns }) => ({ name, includes, assigns }));

interface DescribedRules {
  readonly collection: string;
  readonly member?: string;
  readonly rules: Readonly<Partial<Record<Action, readonly Policy[]>>>;
}

function describeRules({ collection, member, rules }: DescribedRules, text: ReturnType<typeof servedTextOf>) {
  const describe = ({ parts: { roles, when } }: Policy, action: Action, index: number) => {
    const place = text.conditionOf({ collection, action, index, ...(member !== undefined && { member }) });
    return { roles, ...(when !== undefined && { when }), ...(when !== undefined && place && { place }) };
  };
  const all = ACTIONS.flatMap((action) => {
    const each = rules[action];
    return each === undefined ? [] : [[action, each.map((rule, i) => describe(rule, action, i))] as const];
  });
  return Object.fromEntries(all);
}

/** @param text given for administrators */
function describeCollection(
  collection: Collection,
  names: ReadonlySet<string>,
  text: ReturnType<typeof servedTextOf> | undefined,
) {
  const { name, kind, fields, relations, access, memberAccess } = collection;
  const rulesOfMember = (member: string) => {
    const rules = memberAccess.get(member);
    if (rules === undefined || text === undefined) return {};
    return { rules: describeRules({ collection: name, member, rules }, text) };
  };
  return {
    name,
    kind,
    key: { type: keyOf(collection).kind, made_by: madeBy(collection) },
    title: collection.title,
    changes: collection.feed !== undefined,
    fields: [...fields.values()].map((field) => ({ ...describeField(field), ...rulesOfMember(field.name) })),
    relations: [...relations.values()]
      .filter((relation) => names.has(relation.collection))
      .map((relation) => ({ ...describeRelation(relation), ...rulesOfMember(relation.name) })),
    ...(text !== undefined && { rules: describeRules({ collection: name, rules: access }, text) }),
  };
}

function describeField({ name, type, needed, readOnly, unique, search = false, ...field }: Field) {
  const { enum: allowed, min, max, default: otherwise } = field;
  return {
    name,
    type,
    required: needed,
    read_only: readOnly,
    unique,
    search,
    ...(allowed === undefined ? {} : { enum: allowed }),
    ...(min === undefined ? {} : { min }),
    ...(max === undefined ? {} : { max }),
    ...servedDefault(otherwise),
  };
}

function servedDefault(given: Field['default']): { readonly default?: string | number | boolean } {
  if (given === undefined) return {};
  if (given.kind === 'constant') return { default: given.value };
  if (given.kind === 'auth') return { default: `@request.auth.${given.name}` };
  return { default: given.zone === undefined ? '@now' : '@today' };
}

function describeRelation(relation: Relation) {
  const { name, kind, collection } = relation;
  const isReference = kind === 'belongs_to';
  return {
    name,
    kind,
    collection,
    required: isReference && relation.needed,
    read_only: kind === 'has_many' || (isReference && relation.readOnly),
    ...(isReference && servedDefault(relation.default)),
    ...('via' in relation ? { via: relation.via } : {}),
  };
}
