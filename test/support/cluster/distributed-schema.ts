/**
 * The schema of a suite with all its collections distributed by one tenant, which no caller can choose. The suites about routes
 * also run with it, and expect the same.
 */
import { parse, stringify } from 'yaml';
import type { Database } from '../../../src/database/contract.ts';
import { raw } from '../../../src/sql.ts';

export const TENANT = '7e000000-0000-4000-8000-000000000001';
const PIN = '@record.tenant = @request.auth.tenant';
const BUILT_IN = ['users', 'files'];

type Rule = string | boolean | { readonly roles?: readonly string[]; readonly when?: string | boolean };
interface Member {
  kind?: string;
  collection?: string;
  unique?: boolean | string | { readonly within?: string | readonly string[] };
}
interface CollectionText {
  distribute?: unknown;
  fields?: Record<string, Member | string>;
  relations?: Record<string, Member | object>;
  access?: Record<string, Rule | readonly Rule[]>;
  checks?: object;
  no_overlap?: object;
  soft_delete?: boolean;
  history?: unknown;
}

export function distributed(text: string): string {
  const schema = parse(text, { merge: true, maxAliasCount: -1 }) as { collections?: Record<string, CollectionText> };
  const collections = schema.collections ?? {};
  const everywhere = reachedFrom('users', collections);
  for (const name of everywhere) collections[name] = { ...collections[name], distribute: 'reference' };
  const plain = Object.keys(collections).filter((name) => !BUILT_IN.includes(name) && !everywhere.has(name));
  for (const name of plain) collections[name] = divided(collections[name] ?? {}, plain);
  const users = collections.users ?? {};
  const own = { kind: 'belongs_to', collection: 'tenants', access: { write: [{ roles: ['admin'] }] } };
  collections.users = { ...users, relations: { ...users.relations, tenant: own } };
  collections.tenants = { distribute: 'reference', fields: { name: 'string' } };
  return stringify({ ...schema, collections }, { aliasDuplicateObjects: false });
}

/** A record on every machine leads only to records that are on every machine too. */
function reachedFrom(name: string, collections: Readonly<Record<string, CollectionText>>): ReadonlySet<string> {
  const reached = new Set([name]);
  for (const from of reached)
    for (const { collection } of Object.values(collections[from]?.relations ?? {}) as readonly Member[])
      if (collection !== undefined) reached.add(collection);
  for (const own of BUILT_IN) reached.delete(own);
  return reached;
}

function divided(
  { fields = {}, relations = {}, access = {}, checks = {}, no_overlap, soft_delete, history }: CollectionText,
  plain: readonly string[],
): CollectionText {
  const within = <M extends Member | string | object>(member: M): M => {
    const unique = typeof member === 'object' ? (member as Member).unique : undefined;
    if (typeof unique === 'object')
      return { ...(member as object), unique: { ...unique, within: [unique.within ?? [], 'tenant'].flat() } } as M;
    return typeof member === 'object' &&
      (member as Member).unique === true &&
      !plain.includes((member as Member).collection ?? '')
      ? { ...member, unique: 'within_tenant' }
      : member;
  };
  const tenant = { kind: 'belongs_to', collection: 'tenants', required: true, default: '@request.auth.tenant' };
  return {
    distribute: { by: 'tenant' },
    fields: mapped(fields, within),
    relations: { ...mapped(relations, within), tenant },
    checks,
    ...(no_overlap !== undefined && { no_overlap }),
    ...(soft_delete !== undefined && { soft_delete }),
    ...(history !== undefined && { history }),
    access: mapped(access, (rules) => (Array.isArray(rules) ? rules.map(pinned) : pinned(rules as Rule))),
  };
}

function pinned(rule: Rule): Rule {
  if (rule === false) return false;
  if (rule === true) return PIN;
  if (typeof rule === 'string') return `${PIN} and (${rule})`;
  return { ...rule, when: rule.when === undefined || rule.when === true ? PIN : `${PIN} and (${rule.when})` };
}

const mapped = <T>(all: Readonly<Record<string, T>>, change: (each: T) => T): Record<string, T> =>
  Object.fromEntries(Object.entries(all).map(([name, each]) => [name, change(each)]));

/** Everybody is of the tenant. */
export async function placeEverybody(db: Database): Promise<void> {
  await db.run(raw(`INSERT INTO tenants (id) VALUES ('${TENANT}')`));
  await db.run(raw(`ALTER TABLE users ALTER COLUMN tenant_id SET DEFAULT '${TENANT}'`));
  await db.run(raw(`UPDATE users SET tenant_id = '${TENANT}'`));
}

/** Answers as the suites know them. A record begins with its id. */
export const withoutTenant = (text: string): string => text.replaceAll(`,"tenant":"${TENANT}"`, '');
