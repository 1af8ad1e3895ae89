/**
 * Finds the tenant of a request's records, where collections are divided by tenant. Everything that
 * is read or written beside a record belongs to its tenant or is on every machine, so each
 * statement names one tenant.
 */
import { invariant } from '../invariant.ts';
import { LINK_TENANT_COLUMN } from '../policy/condition.ts';
import { type Action, own, type Row } from '../policy/types.ts';
import type { Collection, ManyToMany, TenantKey } from '../schema/model/model.ts';
import { empty, ident, raw, type Sql, sql, uuid } from '../sql.ts';
import { type AccessContext, type Reading, readable, type Store } from './access-context.ts';
import { tableOf } from './record-shape.ts';

/** No record is of it. */
const NOBODY = '00000000-0000-0000-0000-000000000000';

/** Marks statements about the records of all tenants, after the verb. */
export const EVERY_TENANT = raw('/* every tenant */ ');

export const tenancyOf = ({ tenantLayout }: Pick<Collection, 'tenantLayout'>): TenantKey | undefined =>
  tenantLayout?.kind === 'by' ? tenantLayout : undefined;

interface WrittenValue {
  readonly column: string;
  readonly value: unknown;
}

/** The tenant of a record that is to be written. */
export function tenantIn(collection: Collection, values: readonly WrittenValue[]): string | undefined {
  const tenancy = tenancyOf(collection);
  const value = tenancy && values.find(({ column }) => column === tenancy.column)?.value;
  return typeof value === 'string' ? value : undefined;
}

/** The tenant of a record as policies see it. */
export function tenantOf(collection: Collection, record: Row): string | undefined {
  const tenancy = tenancyOf(collection);
  const value = tenancy && own(record, tenancy.by);
  return typeof value === 'string' ? value : undefined;
}

/** The tenant that every open rule requires of the records. */
function requiredTenant(access: AccessContext, action: Action): string | undefined {
  const { collection } = access;
  const tenancy = tenancyOf(collection);
  if (tenancy === undefined) return undefined;
  const permit = access.permit(collection.name, action);
  const tenant = permit.pinned(tenancy.column);
  const isProven = tenancy.lists === 'filtered' || permit.verdict === 'deny' || tenant !== undefined;
  invariant(isProven, 'every rule of a routed collection requires one tenant');
  return tenant;
}

/** The reading of one record: by the rules of the action, or, where these do not say, as it is stored. */
export function inTenantOf<R extends Reading>(reading: R, id: string, action: Action): R | Promise<R> {
  const tenancy = tenancyOf(reading.access.collection);
  return tenancy === undefined ? reading : inFoundTenant(reading, { id, action, tenancy });
}

interface TenantQuestion {
  readonly id: string;
  readonly action: Action;
  readonly tenancy: TenantKey;
}

async function inFoundTenant<R extends Reading>(reading: R, { id, action, tenancy }: TenantQuestion): Promise<R> {
  const { collection } = reading.access;
  const required = requiredTenant(reading.access, action) ?? requiredTenant(reading.access, 'read');
  if (required !== undefined) return { ...reading, tenant: required };
  // A caller whom no rule allows finds nothing.
  if (tenancy.lists === 'routed') return { ...reading, tenant: NOBODY };
  const [row] = await reading.q.rows(sql`
    SELECT ${EVERY_TENANT}t.${ident(tenancy.column)}
      FROM ${tableOf(collection)} AS t
     WHERE t.id = ${uuid(id)}`);
  return { ...reading, tenant: row?.[0] ?? NOBODY };
}

/** Where the rules of the action require another tenant than the record has: whether the caller may read it there. */
export async function isReadableElsewhere(reading: Reading, id: string): Promise<boolean> {
  const { access, store } = reading;
  const { name } = access.collection;
  const { tenant, q } = await inTenantOf(reading, id, 'read');
  if (tenant === reading.tenant) return false;
  const found = await q.rows(sql`
    SELECT 1
      FROM ${store.from(name, raw('t'))}
     WHERE t.id = ${uuid(id)}${isOfTenant({ store, tenant }, name, 't')}
       AND ${readable(access, name, 't')}`);
  return found.length > 0;
}

/** Of the records of a list: by its rules, or by its filters. @param facts what the filters say of every record */
export function listedTenant(access: AccessContext, facts: Row): string | undefined {
  const tenancy = tenancyOf(access.collection);
  if (tenancy === undefined) return undefined;
  const filtered = own(facts, tenancy.by);
  return requiredTenant(access, 'list') ?? (typeof filtered === 'string' ? filtered : undefined);
}

type TenantReading = Pick<Reading, 'store' | 'tenant'>;

/** ` AND x.team_id = $1`: the rows of the collection that are named `alias` are of the tenant. */
export function isOfTenant({ store, tenant }: TenantReading, collection: string, alias: string): Sql {
  const tenancy = tenancyOf(store.shape(collection).collection);
  return tenancy === undefined || tenant === undefined
    ? empty
    : sql` AND ${ident(alias, tenancy.column)} = ${uuid(tenant)}`;
}

/** Whether it is known where the records of the collection are. */
export const isAskable = ({ store, tenant }: TenantReading, collection: string): boolean =>
  tenant !== undefined || tenancyOf(store.shape(collection).collection) === undefined;

interface NamedRow {
  readonly collection: string;
  readonly alias: string;
}

/** ` AND x.team_id = t.team_id`: the rows are of one tenant. */
export function areOfOneTenant(store: Store, one: NamedRow, other: NamedRow): Sql {
  const [a, b] = [one, other].map(({ collection, alias }) => {
    const tenancy = tenancyOf(store.shape(collection).collection);
    return tenancy && ident(alias, tenancy.column);
  });
  return a === undefined || b === undefined ? empty : sql` AND ${a} = ${b}`;
}

/** ` AND l._tenant = t.team_id`: the links named `link` are of the tenant of the record that has the relation. */
export function areLinksOf(store: Store, link: string, owner: NamedRow): Sql {
  const tenancy = tenancyOf(store.shape(owner.collection).collection);
  if (tenancy === undefined) return empty;
  return sql` AND ${ident(link, LINK_TENANT_COLUMN)} = ${ident(owner.alias, tenancy.column)}`;
}

/** Names in a statement. */
interface LinkedRow {
  readonly alias: string;
  readonly link: string;
}

/** ` AND x.team_id = l._tenant`: the linked row is of the tenant of the link. */
export function isOfLink(store: Store, { collection }: ManyToMany, { alias, link }: LinkedRow): Sql {
  const tenancy = tenancyOf(store.shape(collection).collection);
  return tenancy === undefined ? empty : sql` AND ${ident(alias, tenancy.column)} = ${ident(link, LINK_TENANT_COLUMN)}`;
}

/** ` AND l._tenant = $1`, of the links of a record of the collection. */
export function areLinksOfTenant({ store, tenant }: TenantReading, owner: string, link: string): Sql {
  const isDivided = tenancyOf(store.shape(owner).collection) !== undefined;
  return isDivided && tenant !== undefined ? sql` AND ${ident(link, LINK_TENANT_COLUMN)} = ${uuid(tenant)}` : empty;
}
