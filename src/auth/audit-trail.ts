/**
 * The audit trail: the events of accounts, without secrets. Written in the same transaction as the
 * event, if there is one.
 */
import { v7 } from 'uuid';
import type { Cells, Database, Queryable } from '../database/contract.ts';
import { normalEmail } from '../schema/model/normal-email.ts';
import { apiTime, empty, join, param, rowFrom, type Sql, sql, text, typedLiteral, uuid } from '../sql.ts';

type AuditEvent =
  | 'register'
  | 'login'
  | 'login_failed'
  | 'login_limited'
  | 'guest_started'
  | 'logout'
  | 'session_ended'
  | 'sessions_ended'
  | 'refresh_reused'
  | 'sign_in_confirmed'
  | 'confirmation_failed'
  | 'second_factor_asked'
  | 'second_factor_failed'
  | 'second_factor_enrolled'
  | 'second_factor_removed'
  | 'second_factor_reset'
  | 'recovery_codes_renewed'
  | 'passkey_login'
  | 'passkey_added'
  | 'passkey_removed'
  | 'passkey_counter_went_back'
  | 'password_changed'
  | 'password_change_failed'
  | 'password_reset_requested'
  | 'password_reset'
  | 'email_verification_requested'
  | 'email_verified'
  | 'email_change_requested'
  | 'email_change_failed'
  | 'email_changed'
  | 'oauth_login'
  | 'oauth_linked'
  | 'oauth_unlinked'
  | 'oauth_failed'
  | 'roles_changed'
  | 'file_link_made'
  | 'explained'
  | 'user_invited'
  | 'invite_removed'
  | 'user_added'
  | 'user_deleted'
  | 'user_disabled'
  | 'user_enabled'
  | 'key_rotated'
  | 'keys_revoked'
  | 'api_key_created'
  | 'api_key_changed'
  | 'api_key_rotated'
  | 'api_key_revoked';

/** The client of a request, as the audit trail keeps it. */
export interface RequestClient {
  readonly ip?: string;
  readonly userAgent?: string;
  readonly requestId?: string;
  /** Accept-Language, for mails; not kept. */
  readonly language?: string;
}

export interface AuditEntry {
  readonly event: AuditEvent;
  readonly userId?: string | undefined;
  /** The user who caused the event, if not `userId`. */
  readonly actorId?: string | undefined;
  readonly sessionId?: string | undefined;
  readonly client?: RequestClient | undefined;
  /** Never a password, token, cookie or code. */
  readonly detail?: Readonly<Record<string, unknown>> | undefined;
}

/** Long enough for real values; strangers choose these strings. */
const MAX_CELL_LENGTH = 256;

export const clip = (value: string | undefined): string | null =>
  value === undefined ? null : value.toWellFormed().replaceAll('\0', '').slice(0, MAX_CELL_LENGTH).toWellFormed();

/** PostgreSQL stores no NUL and no lone surrogate. */
const storable = (_key: string, value: unknown): unknown =>
  typeof value === 'string' ? value.toWellFormed().replaceAll('\0', '') : value;

export async function recordAudit(db: Queryable, entry: AuditEntry): Promise<void> {
  await db.run(auditing(entry));
}

/** The statement that records the event. @param from a part of the statement around it, without whose row nothing is recorded */
export function auditing(entry: AuditEntry, from?: Sql): Sql {
  const { event, userId, actorId, sessionId, client, detail } = entry;
  const detailText = detail === undefined ? null : JSON.stringify(detail, storable);
  const row = sql`${uuid(v7())}, now(), ${text(event)}, ${uuid(userId ?? null)}, ${uuid(actorId ?? null)},
            ${uuid(sessionId ?? null)}, ${text(clip(client?.ip))}, ${text(clip(client?.userAgent))},
            ${text(clip(client?.requestId))}, ${text(detailText)}`;
  return sql`
    INSERT INTO "_auth_audit"
           (id, at, event, user_id, actor_id, session_id, ip, user_agent, request_id, detail)
    ${rowFrom(row, from)}`;
}

/** Events that one statement deletes. */
const PRUNED_AT_ONCE = 10_000;

/**
 * Deletes events older than `keep` seconds. A role that may not delete events (docs/operations.md,
 * Database roles) leaves that to the owner.
 */
export async function pruneAudit(db: Database, keep: number): Promise<void> {
  // Ids begin with their time (RFC 9562, 5.7), so that the primary key finds the old ones.
  const oldest = v7({ msecs: Date.now() - keep * 1_000, random: new Uint8Array(16), seq: 0 });
  if (!(await mayDelete(db))) return;
  let deleted: number;
  do {
    deleted = await db.run(sql`
      DELETE FROM "_auth_audit"
       WHERE id IN (
             SELECT id
               FROM "_auth_audit"
              WHERE id < ${uuid(oldest)}
              ORDER BY id
              LIMIT ${typedLiteral('int8', PRUNED_AT_ONCE)})`);
  } while (deleted === PRUNED_AT_ONCE);
}

async function mayDelete(db: Database): Promise<boolean> {
  const [row] = await db.rows(sql`SELECT has_table_privilege(quote_ident(${text('_auth_audit')}), 'DELETE')`);
  return row?.[0] === 't';
}

export interface AuditQuery {
  /** The user's present email, or the email at its deletion. */
  readonly email?: string | undefined;
  readonly userId?: string | undefined;
  readonly event?: string | undefined;
  /** The id of an event: only earlier ones. */
  readonly before?: string | undefined;
  readonly limit: number;
}

export interface AuditRow {
  readonly id: string;
  readonly at: string;
  readonly event: string;
  readonly user_id: string | null;
  /** The user's present email. */
  readonly email: string | null;
  readonly actor_id: string | null;
  readonly session_id: string | null;
  readonly ip: string | null;
  readonly user_agent: string | null;
  readonly request_id: string | null;
  readonly detail: Readonly<Record<string, unknown>> | null;
}

/** Newest first. */
export async function readAudit(
  db: Queryable,
  { email, userId, event, before, limit }: AuditQuery,
): Promise<readonly AuditRow[]> {
  const conditions = [
    ...(email === undefined ? [] : [sql`a.user_id IN (${userIdsOf(email)})`]),
    ...(userId === undefined ? [] : [sql`a.user_id = ${uuid(userId)}`]),
    ...(before === undefined ? [] : [sql`a.id < ${uuid(before)}`]),
    ...(event === undefined ? [] : [sql`a.event = ${text(event)}`]),
  ];
  const where = conditions.length === 0 ? empty : sql`WHERE ${join(conditions, ' AND ')}`;
  const rows = await db.rows(sql`
    SELECT a.id, ${apiTime(sql`a.at`)},
           a.event, a.user_id, u.email, a.actor_id, a.session_id, a.ip, a.user_agent, a.request_id, a.detail
      FROM "_auth_audit" a
      LEFT JOIN "users" u ON u.id = a.user_id
     ${where}
     ORDER BY a.id DESC
     LIMIT ${param('int8', limit)}`);
  return rows.map(auditRow);
}

/** Selects users who have the address, or had it at their deletion. */
function userIdsOf(email: string) {
  const address = text(normalEmail(email));
  return sql`
    SELECT id FROM "users" WHERE email = ${address}
     UNION
    SELECT user_id FROM "_auth_audit" WHERE event = 'user_deleted' AND detail::jsonb ->> 'email' = ${address}`;
}

const AUDIT_COLUMNS = [
  'id',
  'at',
  'event',
  'user_id',
  'email',
  'actor_id',
  'session_id',
  'ip',
  'user_agent',
  'request_id',
];

/** Reads the columns in the order of `readAudit`. */
function auditRow(cells: Cells): AuditRow {
  const row = Object.fromEntries(AUDIT_COLUMNS.map((name, i) => [name, cells[i] ?? null]));
  const detail = cells[AUDIT_COLUMNS.length];
  return { ...row, detail: detail == null ? null : JSON.parse(detail) } as AuditRow;
}
