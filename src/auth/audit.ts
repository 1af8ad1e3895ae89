/** What happened to accounts, told without secrets. Part of the transaction of what it tells, where there is one. */
import { v7 } from 'uuid';
import { empty, join, param, sql } from '../sql.ts';
import type { Queryable } from '../store/database/contract.ts';

export type AuditEvent =
  | 'register'
  | 'login'
  | 'login_failed'
  | 'login_limited'
  | 'logout'
  | 'session_ended'
  | 'refresh_reused'
  | 'password_changed'
  | 'password_change_failed'
  | 'password_reset_requested'
  | 'password_reset'
  | 'email_verified'
  | 'oauth_login'
  | 'oauth_linked'
  | 'oauth_failed'
  | 'roles_changed'
  | 'user_added'
  | 'user_disabled'
  | 'user_enabled'
  | 'key_rotated';

/** Who asks over the wire, as far as it is worth keeping. */
export interface Client {
  readonly ip?: string;
  readonly userAgent?: string;
  readonly requestId?: string;
}
export interface AuditEntry {
  readonly event: AuditEvent;
  readonly userId?: string;
  /** Who did it, where that is another than `userId`. */
  readonly actorId?: string;
  readonly sessionId?: string;
  readonly client?: Client;
  /** Never a password, token, cookie or code. */
  readonly detail?: Readonly<Record<string, unknown>>;
}

/** Long enough for real ones; a stranger chooses these texts. */
const MAX_USER_AGENT = 256;
export const clip = (text: string | undefined): string | null =>
  text === undefined ? null : text.toWellFormed().replaceAll('\0', '').slice(0, MAX_USER_AGENT).toWellFormed();

export async function record(db: Queryable, entry: AuditEntry): Promise<void> {
  const { client } = entry;
  const detail =
    entry.detail === undefined ? null : JSON.stringify(entry.detail).toWellFormed().replaceAll('\\u0000', '');
  await db.run(
    sql`INSERT INTO "_auth_audit" (id, at, event, user_id, actor_id, session_id, ip, user_agent, request_id, detail) VALUES (${param('uuid', v7())}, now(), ${param('text', entry.event)}, ${param('uuid', entry.userId ?? null)}, ${param('uuid', entry.actorId ?? null)}, ${param('uuid', entry.sessionId ?? null)}, ${param('text', clip(client?.ip))}, ${param('text', clip(client?.userAgent))}, ${param('text', clip(client?.requestId))}, ${param('text', detail)})`,
  );
}

export interface AuditQuery {
  readonly email?: string;
  readonly event?: string;
  readonly limit: number;
}
export interface AuditRow {
  readonly at: string;
  readonly event: string;
  readonly user_id: string | null;
  /** Of the user as it is now. */
  readonly email: string | null;
  readonly actor_id: string | null;
  readonly session_id: string | null;
  readonly ip: string | null;
  readonly user_agent: string | null;
  readonly request_id: string | null;
  readonly detail: Readonly<Record<string, unknown>> | null;
}

/** Newest first. */
export async function readAudit(db: Queryable, { email, event, limit }: AuditQuery): Promise<readonly AuditRow[]> {
  const conditions = [
    ...(email === undefined ? [] : [sql`u.email = ${param('text', email.toLowerCase())}`]),
    ...(event === undefined ? [] : [sql`a.event = ${param('text', event)}`]),
  ];
  const where = conditions.length === 0 ? empty : sql`WHERE ${join(conditions, ' AND ')}`;
  const rows = await db.rows(
    sql`SELECT to_char(a.at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'), a.event, a.user_id, u.email, a.actor_id, a.session_id, a.ip, a.user_agent, a.request_id, a.detail FROM "_auth_audit" a LEFT JOIN "users" u ON u.id = a.user_id ${where} ORDER BY a.id DESC LIMIT ${param('int8', limit)}`,
  );
  return rows.map(([at, kind, user_id, address, actor_id, session_id, ip, user_agent, request_id, detail]) => ({
    at: at!,
    event: kind!,
    user_id: user_id!,
    email: address!,
    actor_id: actor_id!,
    session_id: session_id!,
    ip: ip!,
    user_agent: user_agent!,
    request_id: request_id!,
    detail: detail == null ? null : (JSON.parse(detail) as Record<string, unknown>),
  }));
}
