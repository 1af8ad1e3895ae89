/** The rows of API keys. */
import { namedCells, readTextArray } from '../../database/cells.ts';
import type { Cells, Queryable, Transaction } from '../../database/contract.ts';
import { apiTime, param, raw, type Sql, seconds, sql, text, uuid } from '../../sql.ts';
import type { BoundsInput, KeyLimit } from './key-bounds.ts';
import { KEY_PREFIX } from './key-token.ts';

/** A list shows the newest keys. */
const MAX_LISTED_KEYS = 1_000;
/** A use is recorded at most once in this time. */
const USED_EVERY_SECONDS = 60;

/** A key as routes show it; never its secret. */
export interface ApiKey extends BoundsInput {
  readonly id: string;
  readonly name: string;
  readonly roles: readonly string[];
  readonly publishable: boolean;
  readonly expires_at: string | null;
  readonly last_used_at: string | null;
  readonly created_at: string;
  /** The user who made it, and with whom it ends. Null: the command line made it. */
  readonly created_by: string | null;
  /** The text before the secret. */
  readonly prefix: string;
}

/** A secret before a rotation, which is good for a while. */
export interface FormerSecret {
  readonly hash: string;
  /** Milliseconds since the epoch. */
  readonly until: number;
}

/** A key that is in force. */
export interface ApiKeyState extends BoundsInput {
  readonly id: string;
  readonly roles: readonly string[];
  readonly isPublishable: boolean;
  readonly createdBy: string | undefined;
  readonly hash: string;
  readonly formers: readonly FormerSecret[];
  /** Milliseconds since the epoch. */
  readonly expiresAt: number;
}

export interface NewApiKey extends BoundsInput {
  readonly id: string;
  readonly name: string;
  readonly roles: readonly string[];
  readonly publishable: boolean;
  readonly hash: string;
  readonly expires_at: string | null;
  readonly createdBy: string | undefined;
}

export interface ApiKeyEdit {
  readonly name: string;
  readonly limit: KeyLimit | null;
  readonly expires_at: string | null;
}

export async function insertApiKey(tx: Transaction, key: NewApiKey): Promise<void> {
  const { limit, addresses, origins } = key;
  await tx.run(sql`
    INSERT INTO "_auth_api_keys"
           (id, name, roles, publishable, bounds, secret_hash, expires_at, created_at, created_by)
    VALUES (${uuid(key.id)}, ${text(key.name)}, ${param('text[]', key.roles)}, ${param('bool', key.publishable)},
            ${text(JSON.stringify({ limit, addresses, origins }))}, ${text(key.hash)},
            ${param('timestamptz', key.expires_at)}, now(), ${uuid(key.createdBy ?? null)})`);
}

/** Newest first. @param owner undefined: the keys of all users, and of the command line */
export const listApiKeys = (db: Queryable, owner: string | undefined): Promise<readonly ApiKey[]> =>
  shownKeys(db, owner === undefined ? sql`true` : sql`k.created_by = ${uuid(owner)}`);

export async function findApiKey(q: Queryable, id: string): Promise<ApiKey | undefined> {
  const [found] = await shownKeys(q, sql`k.id = ${uuid(id)}`);
  return found;
}

/** The newest key of this name that the command line made. */
export async function operatorKeyNamed(q: Queryable, name: string): Promise<string | undefined> {
  const [found] = await q.rows(sql`
    SELECT k.id
      FROM "_auth_api_keys" k
     WHERE k.name = ${text(name)}
       AND k.created_by IS NULL
       AND (k.expires_at IS NULL OR k.expires_at > now())
     ORDER BY k.id DESC
     LIMIT 1`);
  return found?.[0] ?? undefined;
}

export async function lockApiKey(tx: Transaction, id: string): Promise<void> {
  await tx.rows(sql`SELECT 1 FROM "_auth_api_keys" WHERE id = ${uuid(id)} FOR UPDATE`);
}

/** Counts the keys of the user that have not expired. */
export async function countApiKeys(tx: Transaction, owner: string): Promise<number> {
  const [row] = await tx.rows(sql`
    SELECT count(*)
      FROM "_auth_api_keys" k
     WHERE k.created_by = ${uuid(owner)}
       AND (k.expires_at IS NULL OR k.expires_at > now())`);
  return Number(namedCells(row, 'count').count);
}

export async function updateApiKey(
  tx: Transaction,
  id: string,
  { name, limit, expires_at }: ApiKeyEdit,
): Promise<void> {
  await tx.run(sql`
    UPDATE "_auth_api_keys"
       SET name = ${text(name)},
           bounds = (bounds::jsonb || jsonb_build_object('limit', ${text(JSON.stringify(limit))}::jsonb))::text,
           expires_at = ${param('timestamptz', expires_at)}
     WHERE id = ${uuid(id)}`);
}

/** Lists the former secrets that are good. */
export async function formerSecretsOf(tx: Transaction, id: string): Promise<readonly FormerSecret[]> {
  const [cells] = await tx.rows(sql`
    SELECT ${FORMER_COLUMNS}
      FROM "_auth_api_keys" k
     WHERE k.id = ${uuid(id)}`);
  return formersOf(namedCells(cells, ...FORMER_CELLS));
}

export interface Rotation {
  /** The hash of the new secret. */
  readonly hash: string;
  /** Seconds for which the present secret stays good. */
  readonly overlap: number;
  /** The former secrets that stay good. */
  readonly formers: readonly FormerSecret[];
}

export async function replaceSecret(tx: Transaction, id: string, { hash, overlap, formers }: Rotation): Promise<void> {
  await tx.run(sql`
    UPDATE "_auth_api_keys"
       SET earlier_secrets = ${text(JSON.stringify(formers))},
           former_hash = secret_hash,
           former_until = now() + ${seconds(overlap)},
           secret_hash = ${text(hash)}
     WHERE id = ${uuid(id)}`);
}

export async function removeApiKey(tx: Transaction, id: string): Promise<void> {
  await tx.run(sql`DELETE FROM "_auth_api_keys" WHERE id = ${uuid(id)}`);
}

/** Deletes keys that expired long ago. */
export async function pruneApiKeys(db: Queryable): Promise<void> {
  await db.run(raw(`DELETE FROM "_auth_api_keys" WHERE expires_at < now() - interval '30 days'`));
}

const FORMER_CELLS = ['formerHash', 'formerUntil', 'earlier'] as const;
const STATE_CELLS = ['id', 'roles', 'publishable', 'bounds', 'hash', ...FORMER_CELLS, 'expiresAt'] as const;

/** Records the uses. A key that is unknown or has expired, or whose maker is disabled, has no state. */
export async function apiKeyStatesOf(db: Queryable, ids: readonly string[]): Promise<ReadonlyMap<string, ApiKeyState>> {
  const seen = await seenKeys(db, ids);
  const used = seen.flatMap(({ state, isUseRecorded }) => (isUseRecorded ? [] : [state.id]));
  if (used.length > 0) await recordUse(db, used);
  return new Map(seen.map(({ state }) => [state.id, state]));
}

/** Reads a key in force without a use of it. */
export const unusedKeyState = async (db: Queryable, id: string): Promise<ApiKeyState | undefined> =>
  (await seenKeys(db, [id]))[0]?.state;

async function seenKeys(db: Queryable, ids: readonly string[]) {
  const rows = await db.rows(sql`
    SELECT k.id, k.roles, k.publishable, k.bounds, k.secret_hash, ${FORMER_COLUMNS},
           ${millisecondsOf(sql`k.expires_at`, 'Infinity')}, k.created_by, ${isUseRecorded}
      FROM "_auth_api_keys" k
      LEFT JOIN "users" u ON u.id = k.created_by
     WHERE k.id = ANY(${param('uuid[]', ids)})
       AND (k.expires_at IS NULL OR k.expires_at > now())
       AND (k.created_by IS NULL OR NOT u.disabled)`);
  return rows.map((cells) => {
    const [createdBy, isRecorded] = cells.slice(STATE_CELLS.length);
    return { state: keyStateOf(cells, createdBy ?? undefined), isUseRecorded: isRecorded === 't' };
  });
}

/** Tests the row `k`. Citus allows no `now()` in COALESCE. */
const isUseRecorded = sql`(coalesce(k.last_used_at, '-infinity') >= now() - ${seconds(USED_EVERY_SECONDS)})`;

async function recordUse(db: Queryable, ids: readonly string[]): Promise<void> {
  await db.run(sql`
    UPDATE "_auth_api_keys" k
       SET last_used_at = now()
     WHERE k.id = ANY(${param('uuid[]', ids)})
       AND NOT ${isUseRecorded}`);
}

const millisecondsOf = (column: Sql, otherwise: '0' | 'Infinity'): Sql =>
  sql`coalesce(extract(epoch FROM ${column}) * 1000, ${text(otherwise)}::float8)`;

/** Reads the row `k`. */
const FORMER_COLUMNS = sql`
           coalesce(k.former_hash, ''), ${millisecondsOf(sql`k.former_until`, '0')}, k.earlier_secrets`;

/** Newest first. */
function formersOf({ formerHash, formerUntil, earlier }: Readonly<Record<(typeof FORMER_CELLS)[number], string>>) {
  const formers = [{ hash: formerHash, until: Number(formerUntil) }, ...(JSON.parse(earlier) as FormerSecret[])];
  return formers.filter(({ until }) => until > Date.now());
}

function keyStateOf(cells: Cells, createdBy: string | undefined): ApiKeyState {
  const { id, roles, publishable, bounds, hash, expiresAt, ...former } = namedCells(cells, ...STATE_CELLS);
  return {
    id,
    roles: readTextArray(roles),
    isPublishable: publishable === 't',
    ...(JSON.parse(bounds) as BoundsInput),
    createdBy,
    hash,
    formers: formersOf(former),
    expiresAt: Number(expiresAt),
  };
}

async function shownKeys(q: Queryable, where: Sql): Promise<readonly ApiKey[]> {
  const rows = await q.rows(sql`
    SELECT k.id, k.name, k.roles, k.publishable, k.bounds, ${apiTime(sql`k.created_at`)},
           ${apiTime(sql`k.expires_at`)}, ${apiTime(sql`k.last_used_at`)}, k.created_by
      FROM "_auth_api_keys" k
     WHERE ${where}
     ORDER BY k.id DESC
     LIMIT ${param('int8', MAX_LISTED_KEYS)}`);
  return rows.map(apiKeyOf);
}

function apiKeyOf(cells: Cells): ApiKey {
  const names = ['id', 'name', 'roles', 'publishable', 'bounds', 'created_at'] as const;
  const { id, name, roles, publishable, bounds, created_at } = namedCells(cells, ...names);
  const [expires_at = null, last_used_at = null, created_by = null] = cells.slice(names.length);
  const { limit, addresses, origins } = JSON.parse(bounds) as BoundsInput;
  return {
    id,
    name,
    roles: readTextArray(roles),
    publishable: publishable === 't',
    limit,
    addresses,
    origins,
    expires_at,
    last_used_at,
    created_at,
    created_by,
    prefix: `${KEY_PREFIX}${id}`,
  };
}
