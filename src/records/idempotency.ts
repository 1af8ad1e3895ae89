/**
 * Answers kept under an idempotency key, in the transaction of the write itself: both happen, or
 * neither. The content of a record does not outlive it: a delete leaves only the outline of the
 * answers that contain the record, in its own transaction. A delete that runs beside the write may not
 * see the answer, so routes give an answer only to a caller who may read the records in it, and a sweep
 * leaves the outline later.
 */
import { createHash } from 'node:crypto';
import type { Database, Queryable, Transaction } from '../database/contract.ts';
import { type CallerKind, keyOf } from '../policy/types.ts';
import { datetimeOf } from '../policy/values.ts';
import { Refusal } from '../refusal.ts';
import type { Collection, Schema } from '../schema/model/model.ts';
import { type Param, param, raw, type Sql, sql, text, typedLiteral, uuid } from '../sql.ts';
import type { JsonText } from './json-pieces.ts';
import { recordKeyOf } from './record-key.ts';
import { type Collections, everyTenant } from './scope.ts';

/** Older keys are forgotten. */
const EXPIRY = raw(`now() - interval '24 hours'`);
const EXPIRY_MS = 24 * 3600 * 1000;

export interface IdempotencyKey {
  /** The caller who used it. */
  readonly principal: string;
  readonly kind: CallerKind;
  readonly path: string;
  readonly key: string;
  /** The hash of the request body, as received. */
  readonly bodyHash: string;
}

export interface StoredAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  /** The body has ids instead of records; these are to be read again. */
  readonly isOutline?: true;
}

/** A row of either table; `answer` is the JSON text of a StoredAnswer. */
interface KeptRow {
  readonly bodyHash: string;
  readonly answer: string;
}

export interface RecordReference {
  readonly collection: string;
  readonly id: string;
}

interface KeepableAnswer extends Omit<StoredAnswer, 'body'> {
  readonly body: JsonText;
}

export interface AnswerToKeep {
  readonly answer: KeepableAnswer;
  /** The answer without the content of records. */
  readonly outline: KeepableAnswer;
  /** The records whose content is in the answer; undefined: some are deleted again, so that only the outline is kept. */
  readonly records: readonly RecordReference[] | undefined;
}

/** Bytes of a kept answer; of a larger one, the outline is kept. */
export const MAX_KEPT_BYTES = 65_536;

/** Records that a sweep looks for at a time. */
const SWEPT_TOGETHER = 1_000;
/** Before all uuids of records. */
const FIRST_ID = '00000000-0000-0000-0000-000000000000';

interface KeptIn extends AnswerToKeep {
  readonly schema: Collections;
}

/** The uuid by which kept answers name a record: its id, or a digest of it. */
const isKeptByItself = (collection: Collection): boolean => keyOf(collection).kind === 'uuid';
const DIGEST_BYTES = 16;

export function keptIdOf(collection: Collection, id: string): string {
  if (isKeptByItself(collection)) return id;
  const digest = createHash('sha256').update(`${collection.name}/${id}`).digest();
  return digest.toString('hex', 0, DIGEST_BYTES).replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-');
}

/** The same of an expression. */
export function keptIdIn(collection: Collection, id: Sql): Sql {
  if (isKeptByItself(collection)) return id;
  const named = sql`convert_to(${text(`${collection.name}/`)} || ${id}::text, 'UTF8')`;
  return sql`encode(substr(sha256(${named}), 1, ${typedLiteral('int8', DIGEST_BYTES)}::int4), 'hex')::uuid`;
}

const keptReferences = (
  { collections }: Collections,
  records: readonly RecordReference[],
): readonly RecordReference[] =>
  records.map(({ collection, id }) => ({ collection, id: keptIdOf(collections.get(collection)!, id) }));

export class KeptAnswers {
  readonly #db: Database;
  readonly #earlier: EarlierKeys | undefined;
  /** The starts of the last two sweeps. */
  #sweeps: readonly [string, string] = ['-infinity', '-infinity'];

  private constructor(db: Database, earlier: EarlierKeys | undefined) {
    this.#db = db;
    this.#earlier = earlier;
  }

  static async open(db: Database): Promise<KeptAnswers> {
    return new KeptAnswers(db, await EarlierKeys.find(db));
  }

  /**
   * Keeps the answer in the same transaction as the writes, as its last statement. A second request
   * in flight waits here until the first ends; if the first fails, the second takes its place.
   * Returns the answer that another transaction has kept under the key: then this one must be
   * undone. Throws `idempotency_mismatch`, as `find`.
   */
  async keep(tx: Transaction, key: IdempotencyKey, { schema, answer, outline, records }: KeptIn) {
    const storedOutline: StoredAnswer = { ...outline, body: String(outline.body) };
    const before = await this.#earlier?.keep(tx, key, storedOutline);
    if (before !== undefined) return answerIfSameBody(key, before);
    // The text of the outline takes the place of the answer when a record is deleted.
    const outlineText = JSON.stringify({ ...storedOutline, isOutline: true } satisfies StoredAnswer);
    const whole = answer.body.length > MAX_KEPT_BYTES ? '' : JSON.stringify({ ...answer, outline: outlineText });
    const isWhole = records !== undefined && whole !== '' && Buffer.byteLength(whole) <= MAX_KEPT_BYTES;
    const row = { ...key, answer: isWhole ? whole : outlineText };
    const kept = this.#db.isCluster ? await keptOnCluster(tx, row) : keptAnswer(row);
    const [count] =
      kept === undefined ? [] : await tx.rows(insertAnswer(kept, isWhole ? keptReferences(schema, records) : []));
    return count?.[0] === '0' ? this.#findKept(tx, key) : undefined;
  }

  /** The answer to the first request under the key. Throws `idempotency_mismatch` if that had another body. */
  async find(key: IdempotencyKey): Promise<StoredAnswer | undefined> {
    const kept = await this.#findKept(this.#db, key);
    if (kept !== undefined) return kept;
    const before = await this.#earlier?.find(this.#db, key);
    return before && answerIfSameBody(key, before);
  }

  async #findKept(q: Queryable, asked: IdempotencyKey): Promise<StoredAnswer | undefined> {
    const kept = await keptRow(q, asked, raw('SELECT body_hash, answer FROM bylaw_kept_answers'));
    return kept && answerIfSameBody(asked, kept);
  }

  /**
   * Deletes expired keys and returns their number. Leaves the outlines of answers that contain a record that is gone:
   * its delete ran beside the write and did not see the answer. Called by a timer.
   */
  async sweep(schema: Schema): Promise<number> {
    await this.#earlier?.forgetOld(this.#db);
    const expired = await this.#db.run(sql`DELETE FROM bylaw_kept_answers WHERE created_at < ${EXPIRY}`);
    const [row] = await this.#db.rows(raw('SELECT now()'));
    for (const { name } of schema.collections.values()) await this.#forgetGone(schema, name);
    this.#sweeps = [this.#sweeps[1], row![0]!];
    return expired;
  }

  /**
   * Two sweeps look at each answer, because the delete may outlast the first. Records that are kept by a digest of their
   * ids cannot be looked for, so all of their answers become outlines.
   */
  async #forgetGone(schema: Schema, collection: string): Promise<void> {
    const of = schema.collections.get(collection)!;
    const key = recordKeyOf(of);
    const records = everyTenant(schema).from(collection, 't');
    const idsOf = async (statement: Sql): Promise<readonly string[]> =>
      (await this.#db.rows(statement, { lane: 'slow' })).map(([id]) => id!);
    for (let last: string | undefined = FIRST_ID; last !== undefined; ) {
      const kept = await idsOf(sql`
        SELECT DISTINCT record_id
          FROM bylaw_kept_records
          JOIN bylaw_kept_answers USING (user_id, path, key)
         WHERE collection = ${text(collection)}
           AND created_at >= ${param('timestamptz', this.#sweeps[0])}
           AND record_id > ${uuid(last)}
         ORDER BY record_id
         LIMIT ${typedLiteral('int8', SWEPT_TOGETHER)}`);
      last = kept.at(-1);
      if (last === undefined) return;
      const left = isKeptByItself(of)
        ? await idsOf(sql`SELECT ${key.of('t')} FROM ${records.where(key.isAmong('t', kept))}`)
        : [];
      const gone = kept.filter((id) => !left.includes(id));
      if (gone.length > 0) await this.#db.transaction((tx) => forgetContents(tx, gone));
    }
  }
}

function answerIfSameBody({ bodyHash }: IdempotencyKey, kept: KeptRow): StoredAnswer {
  if (kept.bodyHash === bodyHash) return JSON.parse(kept.answer) as StoredAnswer;
  throw new Refusal('idempotency_mismatch', 'this Idempotency-Key was used with another body');
}

interface AnswerRow extends IdempotencyKey {
  readonly answer: string;
}

/** The users who may keep an answer: those who have just deleted themselves keep nothing. */
const isKeeper = ({ principal, kind }: IdempotencyKey): Sql =>
  kind === 'user' ? sql`EXISTS (SELECT 1 FROM users WHERE id = ${uuid(principal)})` : sql`true`;

/** Inserts the answer. An expired row is taken over. */
const keptAnswer = (row: AnswerRow): Sql => sql`
         INSERT INTO bylaw_kept_answers AS kept (user_id, kind, path, key, body_hash, answer)
         SELECT ${uuid(row.principal)}, ${text(row.kind)}, ${text(row.path)}, ${text(row.key)}, ${text(row.bodyHash)}, ${text(row.answer)}
          WHERE ${isKeeper(row)}
             ON CONFLICT (user_id, path, key) DO UPDATE
            SET body_hash = excluded.body_hash, answer = excluded.answer, created_at = now()
          WHERE kept.created_at < ${EXPIRY}`;

/**
 * The same for a cluster: Citus takes no time of its own in ON CONFLICT, and no rows of a table that every node has.
 * Undefined: the user is deleted.
 */
async function keptOnCluster(tx: Transaction, row: AnswerRow): Promise<Sql | undefined> {
  const { principal, path, key, bodyHash, answer } = row;
  const keepers = await tx.rows(sql`SELECT 1 WHERE ${isKeeper(row)}`);
  if (keepers.length === 0) return undefined;
  const now = new Date();
  const expiry = new Date(now.getTime() - EXPIRY_MS);
  return sql`
         INSERT INTO bylaw_kept_answers AS kept (user_id, kind, path, key, body_hash, answer, created_at)
         VALUES (${uuid(principal)}, ${text(row.kind)}, ${text(path)}, ${text(key)}, ${text(bodyHash)}, ${text(answer)}, ${timeOf(now)})
             ON CONFLICT (user_id, path, key) DO UPDATE
            SET body_hash = excluded.body_hash, answer = excluded.answer, created_at = excluded.created_at
          WHERE kept.created_at < ${timeOf(expiry)}`;
}

const timeOf = (time: Date): Param => param('timestamptz', datetimeOf(time));

/**
 * Returns the number of kept answers.
 *
 * @param kept inserts the answer
 */
function insertAnswer(kept: Sql, records: readonly RecordReference[]): Sql {
  const ids = uuidArray(records.map(({ id }) => id));
  const collections = textArray(records.map(({ collection }) => collection));
  return sql`
    WITH kept AS (${kept}
         RETURNING user_id, path, key),
         linked AS (
         INSERT INTO bylaw_kept_records (user_id, path, key, record_id, collection)
         SELECT kept.*, record.*
           FROM kept, unnest(${ids}, ${collections}) AS record
             ON CONFLICT DO NOTHING)
    SELECT count(*) FROM kept`;
}

const uuidArray = (values: readonly string[]): Param => param('uuid[]', values);
const textArray = (values: readonly string[]): Param => param('text[]', values);

// ---------------------------------------------------------------- deletes

/**
 * True if no kept answer contains the record, or any record of the collections. Without the OFFSET, PostgreSQL would
 * join the rows, which takes longer.
 *
 * @param id an expression
 */
export function keptNowhere(id: Sql, collections: readonly string[]): Sql {
  const record = sql`NOT EXISTS (SELECT 1 FROM bylaw_kept_records WHERE record_id = ${id} OFFSET 0)`;
  if (collections.length === 0) return record;
  return sql`${record} AND NOT EXISTS (SELECT 1 FROM bylaw_kept_records WHERE collection = ANY(${textArray(collections)}))`;
}

/** Returns those of the collections that have a record in a kept answer. */
export async function collectionsKept(q: Queryable, collections: readonly string[]): Promise<readonly string[]> {
  if (collections.length === 0) return [];
  const rows = await q.rows(sql`
    SELECT DISTINCT collection
      FROM bylaw_kept_records
     WHERE collection = ANY(${textArray(collections)})`);
  return rows.map(([collection]) => collection!);
}

/** Leaves the outlines of the answers that contain one of the records. */
export async function forgetContents(tx: Transaction, ids: readonly string[]): Promise<void> {
  await tx.run(sql`
    WITH unlinked AS (
         DELETE FROM bylaw_kept_records
          WHERE record_id = ANY(${uuidArray(ids)})
         RETURNING user_id, path, key)
    UPDATE bylaw_kept_answers AS kept
       SET answer = COALESCE(kept.answer::json ->> 'outline', kept.answer)
      FROM unlinked
     WHERE (kept.user_id, kept.path, kept.key) = (unlinked.user_id, unlinked.path, unlinked.key)`);
}

// ---------------------------------------------------------------- upgrades

const EARLIER_ANSWERS = raw(`
      SELECT body_hash, CASE WHEN status IS NOT NULL
                             THEN json_build_object('status', status, 'headers', headers, 'body', body) END
        FROM bylaw_idempotency`);

/** @param answers selects the hash and the answer of every key */
async function keptRow(
  q: Queryable,
  { principal, path, key }: IdempotencyKey,
  answers: Sql,
): Promise<KeptRow | undefined> {
  const [row] = await q.rows(sql`
      ${answers}
       WHERE user_id = ${uuid(principal)}
         AND path = ${text(path)}
         AND key = ${text(key)}
         AND created_at >= ${EXPIRY}`);
  const [bodyHash, answer] = row ?? [];
  return bodyHash == null || answer == null ? undefined : { bodyHash, answer };
}

/**
 * Idempotency keys of the version that kept them in `bylaw_idempotency`. The keys that it has kept
 * are honoured, and while nodes of both versions may run, each key is written into both tables, so
 * that either version finds the keys of the other. Only a database that has been upgraded from that
 * version has the table, and it is used for two days after the upgrade.
 */
class EarlierKeys {
  private constructor() {}

  /** Undefined: no node of the earlier version has used the database within two days. */
  static async find(db: Database): Promise<EarlierKeys | undefined> {
    // The earlier version kept no key on a cluster.
    if (db.isCluster) return undefined;
    const [table] = await db.rows(sql`SELECT to_regclass(quote_ident(${text('bylaw_idempotency')})) IS NOT NULL`);
    if (table?.[0] !== 't') return undefined;
    // The earlier version wrote no history, so the first entry is the upgrade.
    const [row] = await db.rows(raw(`SELECT min(started_at) < now() - interval '48 hours' FROM bylaw_migrations`));
    return row?.[0] === 't' ? undefined : new EarlierKeys();
  }

  /**
   * Keeps the outline for nodes of the earlier version: it never deletes the content of a record.
   * Returns what is kept under the key already; a transaction that is about to keep it is waited for.
   */
  async keep(tx: Transaction, asked: IdempotencyKey, outline: StoredAnswer): Promise<KeptRow | undefined> {
    const { principal, path, key, bodyHash } = asked;
    const { status, headers, body } = outline;
    const count = await tx.run(sql`
      INSERT INTO bylaw_idempotency AS kept (user_id, path, key, body_hash, status, headers, body)
      SELECT id, ${text(path)}, ${text(key)}, ${text(bodyHash)}, ${param('int8', status)}, ${param('jsonb', headers)}, ${text(body)}
        FROM users
       WHERE id = ${uuid(principal)}
          ON CONFLICT (user_id, path, key) DO UPDATE
         SET body_hash = excluded.body_hash, status = excluded.status, headers = excluded.headers, body = excluded.body,
             created_at = now()
       WHERE kept.created_at < ${EXPIRY}`);
    return count === 0 ? this.find(tx, asked) : undefined;
  }

  find(q: Queryable, key: IdempotencyKey): Promise<KeptRow | undefined> {
    return keptRow(q, key, EARLIER_ANSWERS);
  }

  async forgetOld(q: Queryable): Promise<void> {
    await q.run(sql`DELETE FROM bylaw_idempotency WHERE created_at < ${EXPIRY}`);
  }
}
