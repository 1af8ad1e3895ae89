/** The tables of the webhooks: how far each has read the log, and the events that wait or were given up. */
import { namedCells } from '../database/cells.ts';
import type { Cells, Database, Queryable, Transaction } from '../database/contract.ts';
import { apiTime, param, raw, type Sql, seconds, sql, text, uuid } from '../sql.ts';

/** Seconds. */
const GIVEN_UP_KEPT = 30 * 86_400;
const MOST_LISTED_EVENTS = 1_000;

export const webhookTables: readonly Sql[] = [
  // `holder` files and sends until `held_until`. `position` is a snapshot, `rules` a digest of what decided until then.
  raw(`CREATE TABLE IF NOT EXISTS "bylaw_webhooks" (
  name text COLLATE "C" PRIMARY KEY,
  holder uuid,
  held_until timestamptz,
  life text,
  position text,
  at float8,
  rules text
)`),
  // `due_at` is the next attempt. An event without a record is about all of them. `given_up_at`: it is not sent any more.
  raw(`CREATE TABLE IF NOT EXISTS "bylaw_webhook_events" (
  seq bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  id uuid NOT NULL UNIQUE,
  webhook text COLLATE "C" NOT NULL,
  record text COLLATE "C",
  type text NOT NULL,
  body text NOT NULL,
  filed_at timestamptz NOT NULL DEFAULT now(),
  due_at timestamptz NOT NULL DEFAULT now(),
  attempts int NOT NULL DEFAULT 0,
  error text,
  given_up_at timestamptz
)`),
  raw(`CREATE INDEX IF NOT EXISTS "bylaw_webhook_events_due" ON "bylaw_webhook_events" (webhook, due_at, seq)
    WHERE given_up_at IS NULL`),
  raw(`CREATE INDEX IF NOT EXISTS "bylaw_webhook_events_record" ON "bylaw_webhook_events" (webhook, record, seq)
    WHERE given_up_at IS NULL`),
];

/** The place in the log that a webhook has reached. */
export interface ReachedPlace {
  readonly life: string;
  /** A snapshot. */
  readonly position: string;
  /** Milliseconds, when the snapshot was taken. */
  readonly at: number;
  readonly rules: string;
}
export interface HeldWebhook {
  readonly name: string;
  /** Undefined: it begins now. */
  readonly reached: ReachedPlace | undefined;
}

/** Takes the webhooks that no other process holds, or holds them on. @param forSeconds how long */
export async function holdWebhooks(
  db: Database,
  wanted: readonly string[],
  { holder, forSeconds }: { readonly holder: string; readonly forSeconds: number },
): Promise<readonly HeldWebhook[]> {
  const free = await db.rows(sql`
    SELECT name
      FROM unnest(${param('text[]', wanted)}) AS name
      LEFT JOIN "bylaw_webhooks" w USING (name)
     WHERE w.holder IS NULL OR w.holder = ${uuid(holder)} OR w.held_until < now()`);
  if (free.length === 0) return [];
  const names = free.map(([name]) => name!);
  const rows = await db.write(sql`
    INSERT INTO "bylaw_webhooks" AS w (name, holder, held_until)
    SELECT name, ${uuid(holder)}, now() + ${seconds(forSeconds)}
      FROM unnest(${param('text[]', names)}) AS name
     ORDER BY name
        ON CONFLICT (name) DO UPDATE
       SET holder = excluded.holder, held_until = excluded.held_until
     WHERE w.holder IS NULL OR w.holder = excluded.holder OR w.held_until < now()
    RETURNING w.name, w.life, w.position, w.at, w.rules`);
  return rows.map(([name, life, position, at, rules]) => ({
    name: name!,
    reached: life == null || position == null ? undefined : { life, position, at: Number(at), rules: rules ?? '' },
  }));
}

export const releaseWebhooks = (db: Database, holder: string): Promise<unknown> =>
  db.write(sql`
    UPDATE "bylaw_webhooks"
       SET holder = NULL
     WHERE holder = ${uuid(holder)}
    RETURNING name`);

export interface NewEvent {
  readonly id: string;
  readonly record: string | null;
  readonly type: string;
  readonly body: string;
}
interface FiledEvents {
  readonly name: string;
  readonly holder: string;
  readonly reached: ReachedPlace;
  readonly events: readonly NewEvent[];
}

/** Files events with the place that they lead to. False, and nothing is filed: another process holds the webhook. */
export async function fileEvents(tx: Transaction, { name, holder, reached, events }: FiledEvents): Promise<boolean> {
  const { life, position, at, rules } = reached;
  const held = await tx.run(sql`
    UPDATE "bylaw_webhooks"
       SET life = ${text(life)}, position = ${text(position)}, at = ${param('float8', at)}, rules = ${text(rules)}
     WHERE name = ${text(name)}
       AND holder = ${uuid(holder)}
       AND held_until > now()`);
  if (held === 0) return false;
  if (events.length === 0) return true;
  const column = <K extends keyof NewEvent>(key: K): NewEvent[K][] => events.map((event) => event[key]);
  await tx.run(sql`
    INSERT INTO "bylaw_webhook_events" (id, webhook, record, type, body)
    SELECT id, ${text(name)}, record, type, body
      FROM unnest(${param('uuid[]', column('id'))}, ${param('text[]', column('record'))},
                  ${param('text[]', column('type'))}, ${param('text[]', column('body'))})
           WITH ORDINALITY AS e (id, record, type, body, place)
     ORDER BY place`);
  return true;
}

export interface DueEvent {
  readonly id: string;
  readonly record: string | null;
  readonly type: string;
  readonly body: string;
  readonly attempts: number;
  /** Milliseconds since it was filed. */
  readonly age: number;
}

/** An event waits for the earlier ones of its record; one about all records waits for all, and all wait for it. */
export async function dueEvents(db: Queryable, webhook: string, most: number): Promise<readonly DueEvent[]> {
  const rows = await db.rows(sql`
    SELECT e.id, e.record, e.type, e.body, e.attempts, (extract(epoch FROM now() - e.filed_at) * 1000)::text
      FROM "bylaw_webhook_events" e
     WHERE e.webhook = ${text(webhook)}
       AND e.given_up_at IS NULL
       AND e.due_at <= now()
       AND NOT EXISTS (
           SELECT 1
             FROM "bylaw_webhook_events" b
            WHERE b.webhook = ${text(webhook)} AND b.record = e.record AND b.seq < e.seq AND b.given_up_at IS NULL)
       AND NOT EXISTS (
           SELECT 1
             FROM "bylaw_webhook_events" b
            WHERE b.webhook = ${text(webhook)} AND b.record IS NULL AND b.seq < e.seq AND b.given_up_at IS NULL)
       AND (e.record IS NOT NULL OR NOT EXISTS (
           SELECT 1
             FROM "bylaw_webhook_events" b
            WHERE b.webhook = ${text(webhook)} AND b.seq < e.seq AND b.given_up_at IS NULL))
     ORDER BY e.due_at, e.seq
     LIMIT ${param('int8', most)}`);
  return rows.map((row) => {
    const { id, type, body, attempts, age } = namedCells(
      [row[0]!, ...row.slice(2)],
      'id',
      'type',
      'body',
      'attempts',
      'age',
    );
    return { id, record: row[1] ?? null, type, body, attempts: Number(attempts), age: Number(age) };
  });
}

export const removeEvent = (db: Database, id: string): Promise<unknown> =>
  db.write(sql`DELETE FROM "bylaw_webhook_events" WHERE id = ${uuid(id)} RETURNING id`);

/** @param again seconds until the next attempt; undefined: the event is given up */
export const noteFailure = (
  db: Database,
  id: string,
  { error, again }: { readonly error: string; readonly again: number | undefined },
): Promise<unknown> =>
  db.write(sql`
    UPDATE "bylaw_webhook_events"
       SET attempts = attempts + 1,
           error = ${text(error)},
           due_at = now() + ${seconds(again ?? 0)},
           given_up_at = CASE WHEN ${param('bool', again === undefined)} THEN now() END
     WHERE id = ${uuid(id)}
    RETURNING id`);

/** Milliseconds until the next attempt of any event; undefined: none waits. */
export async function nextAttempt(db: Queryable, webhooks: readonly string[]): Promise<number | undefined> {
  const [row] = await db.rows(sql`
    SELECT (extract(epoch FROM min(due_at) - now()) * 1000)::text
      FROM "bylaw_webhook_events"
     WHERE webhook = ANY(${param('text[]', webhooks)})
       AND given_up_at IS NULL`);
  return row?.[0] == null ? undefined : Number(row[0]);
}

export const pruneGivenUp = (db: Database): Promise<unknown> =>
  db.write(sql`
    DELETE FROM "bylaw_webhook_events"
     WHERE given_up_at < now() - ${seconds(GIVEN_UP_KEPT)}
    RETURNING id`);

// ---------------------------------------------------------------- for the operator

/** An event that waits, or was given up; never its body. */
export interface ListedEvent {
  readonly id: string;
  readonly webhook: string;
  readonly type: string;
  readonly record: string | null;
  readonly filed_at: string;
  readonly attempts: number;
  readonly state: 'waiting' | 'given_up';
  readonly next_attempt_at: string | null;
  readonly error: string | null;
}
export interface EventChoice {
  readonly webhook?: string | undefined;
  readonly isGivenUp?: boolean | undefined;
}

const chosen = ({ webhook, isGivenUp }: EventChoice): Sql =>
  sql`${webhook === undefined ? raw('true') : sql`webhook = ${text(webhook)}`}
      AND ${isGivenUp === undefined ? raw('true') : raw(`given_up_at IS ${isGivenUp ? 'NOT ' : ''}NULL`)}`;

/** The oldest first. */
export async function listEvents(db: Queryable, choice: EventChoice): Promise<readonly ListedEvent[]> {
  const rows = await db.rows(sql`
    SELECT id, webhook, type, record, ${apiTime(sql`filed_at`)}, attempts, given_up_at IS NOT NULL, ${apiTime(sql`due_at`)}, error
      FROM "bylaw_webhook_events"
     WHERE ${chosen(choice)}
     ORDER BY seq
     LIMIT ${param('int8', MOST_LISTED_EVENTS)}`);
  return rows.map(listedEventOf);
}

function listedEventOf(row: Cells): ListedEvent {
  const [id, webhook, type, record, filed_at, attempts, isGivenUp, due, error] = row;
  const state = isGivenUp === 't' ? 'given_up' : 'waiting';
  return {
    id: id!,
    webhook: webhook!,
    type: type!,
    record: record ?? null,
    filed_at: filed_at!,
    attempts: Number(attempts),
    state,
    next_attempt_at: state === 'waiting' ? due! : null,
    error: error ?? null,
  };
}

/**
 * Makes events due at once, with another 24 hours. → the number of them.
 * @param id undefined: all that failed, whether they wait or were given up
 */
export async function retryEvents(db: Database, webhook?: string, id?: string): Promise<number> {
  const rows = await db.write(sql`
    UPDATE "bylaw_webhook_events"
       SET due_at = now(), filed_at = now(), attempts = 0, given_up_at = NULL
     WHERE ${id === undefined ? sql`${chosen({ webhook })} AND attempts > 0` : sql`id = ${uuid(id)}`}
    RETURNING id`);
  return rows.length;
}
