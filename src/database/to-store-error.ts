/** Maps errors of PostgreSQL and the driver to the kinds that callers act on. Only this file reads SQLSTATE. */
import { Problem } from '../problem.ts';
import { Refusal } from '../refusal.ts';
import { reasonOf } from '../thrown.ts';
import { StoreError, type Violated } from './contract.ts';

const QUERY_CANCELED = '57014';
const LOCK_NOT_AVAILABLE = '55P03';
const KINDS: Readonly<Record<string, StoreError['kind']>> = {
  23505: 'unique',
  '23P01': 'exclusion', // This one and the next two: rules of tables that other programs own.
  23514: 'check',
  P0001: 'raised',
  23503: 'foreign_key',
  23001: 'foreign_key', // PostgreSQL 18 reports `ON DELETE RESTRICT` with a separate code.
  54000: 'too_long',
  [QUERY_CANCELED]: 'unavailable',
  [LOCK_NOT_AVAILABLE]: 'unavailable',
};
/** Connection, authorization, no such database, resources, shutdown, system, read-only after a failover, idle. */
const UNAVAILABLE = /^(?:08|28|3D|53|57P|58|25006|25P03)/;
/** Starting or stopping, too many connections. */
const STARTING = /^(?:57P0[123]|53300)/;
const DRIVER_LOST = /connect|terminat|closed|timeout|not queryable/i;

interface ServerError extends Error {
  readonly code: string;
  readonly constraint?: string;
  readonly detail?: string;
}

/** Tests the shape, because the embedded database has a separate error class. */
export function isServerError(error: unknown): error is ServerError {
  if (!(error instanceof Error) || !('severity' in error)) return false;
  return 'code' in error && typeof error.code === 'string' && error.code.length === 5;
}

function sqlState(error: unknown): string | undefined {
  const found = error instanceof StoreError ? error.cause : error;
  return isServerError(found) ? found.code : undefined;
}

/** Returns a StoreError if the error is of one of its kinds, else the error itself. */
export function toStoreError(error: unknown): unknown {
  if (error instanceof StoreError) return error;
  if (!isServerError(error)) return isConnectionLoss(error) ? new StoreError('unavailable', error) : error;
  const isBusy = isTransient(error) || isAway(error);
  const kind = KINDS[error.code] ?? (isBusy ? 'unavailable' : undefined);
  if (kind === undefined) return error;
  return new StoreError(kind, error, kind === 'unavailable' ? undefined : violatedBy(error, kind));
}

export function throwStoreError(error: unknown): never {
  throw toStoreError(error);
}

/** The detail reads `Key (team_id, slug)=(…) already exists.`: values may hold anything, after the columns. That of a check is the row. */
function violatedBy({ constraint = '', detail = '' }: ServerError, kind: StoreError['kind']): Violated {
  const list = detail.slice(detail.indexOf('(') + 1);
  const end = kind === 'check' ? -1 : list.indexOf(')=(');
  const columns = end < 0 ? [] : list.slice(0, end).matchAll(/"((?:[^"]|"")*)"|([^, ]+)/g);
  return { constraint, columns: Array.from(columns, ([, quoted, name]) => name ?? quoted!.replaceAll('""', '"')) };
}

/** Citus reports the loss of a node, and the end of the server, as internal errors. */
const LOST = /^XX000 .*(?:connection marked as essential|connection to the remote node|postmaster was shut down)/;
const isAway = ({ code, message }: ServerError): boolean => UNAVAILABLE.test(code) || LOST.test(`${code} ${message}`);

/** The connection is gone, or never was: the outcome of a statement in flight is unknown. */
export function isConnectionLoss(error: unknown): boolean {
  if (isServerError(error)) return isAway(error);
  const isOurs = error instanceof StoreError || error instanceof Refusal || error instanceof Problem;
  if (!(error instanceof Error) || isOurs) return false;
  return ('syscall' in error && error.syscall !== undefined) || DRIVER_LOST.test(error.message);
}

/**
 * Returns true if a transaction may be committed in spite of this error: the server is lost, as a pooler reports it, or
 * stops; or, at the commit, it cancels late or reports no cause. Locks are waited for only before the commit.
 */
export function mayBeCommitted(error: unknown, atCommit: boolean): boolean {
  const state = sqlState(error) ?? '';
  return /^(?:08|57P|58)/.test(state) || (atCommit && /^(?:57014|XX)/.test(state));
}

/** No server answers, or it is starting: a wrong URL, name or password does not explain the error. */
export function isNotReachable(error: unknown): boolean {
  if (!(error instanceof StoreError) || error.kind !== 'unavailable') return false;
  const { cause } = error;
  return isServerError(cause) ? STARTING.test(cause.code) : isConnectionLoss(cause);
}

/** The `lock_timeout` of a migration ended before the lock was free. */
export const isLockTimeout = (error: unknown): boolean => sqlState(error) === LOCK_NOT_AVAILABLE;

/** A column or table is missing: a newer version has renamed it, or taken it from the schema. */
export const isSchemaMoved = (error: unknown): boolean => /^(?:42703|42P01)$/.test(sqlState(error) ?? '');

/** A time limit cancelled the statement, or an operator did. */
export const isQueryCanceled = (error: unknown): boolean => sqlState(error) === QUERY_CANCELED;

/** In tables of other owners: a column does not hold a value (null, too long, out of range, malformed, no range); a right is missing, or row security. */
export const isUnheld = (error: unknown): boolean => /^(?:23502|2200[013]|22P02)$/.test(sqlState(error) ?? '');
export const isDenied = (error: unknown): boolean => sqlState(error) === '42501';

export const isDivisionByZero = (error: unknown): boolean => sqlState(error) === '22012';
/** A parameter names what the database does not know, such as a time zone. */
export const isUnknownName = (error: unknown): boolean => sqlState(error) === '22023';
/** Trying the whole transaction again may succeed: it failed to serialize, or met a deadlock. */
export const isTransient = (error: unknown): boolean =>
  /^(?:40001|40P01)$/.test(sqlState(error) ?? '') || isStalePlan(error);

/** The connection lacks a prepared statement: a migration changed its result, or its first execution was cancelled before it was prepared. */
export function isStalePlan(error: unknown): boolean {
  const state = sqlState(error) ?? '';
  return /^(?:26000|42P05)$/.test(state) || (state === '0A000' && /cached plan must not change/.test(reasonOf(error)));
}
