/**
 * From who somebody is at a provider to a user here. An account is joined with an identity only where both sides have proved the address:
 * neither can a stranger's provider take over an account, nor can an account that a stranger made lie in wait for its owner (pre-hijacking).
 */
import { Problem } from '../problem.ts';
import type { Schema } from '../schema/model.ts';
import { param, sql } from '../sql.ts';
import type { Database, Queryable } from '../store/database/contract.ts';
import { type Client, record } from './audit.ts';
import { checkEmail, normalEmail, type Users } from './users.ts';

export interface Identity {
  readonly issuer: string;
  readonly subject: string;
  readonly email: string | undefined;
  /** The provider said so, with a JSON `true`. */
  readonly emailVerified: boolean;
}

interface Parts {
  readonly db: Database;
  readonly schema: Schema;
  readonly users: Users;
}

/** → the user's id. Throws `account_exists`, `oauth_denied`, `oauth_failed`. */
export async function signIn(
  { db, schema, users }: Parts,
  { identity, client }: { readonly identity: Identity; readonly client: Client },
): Promise<string> {
  const [found] = await db.rows(
    sql`SELECT u.id, u.disabled FROM "_auth_identities" i JOIN "users" u ON u.id = i.user_id WHERE i.issuer = ${param('text', identity.issuer)} AND i.subject = ${param('text', identity.subject)}`,
  );
  if (found !== undefined) {
    if (found[1] === 't') throw new Problem('oauth_denied', 'this account is disabled');
    return found[0]!;
  }
  const email = emailOf(identity);
  const { emailVerified } = identity;
  const local = await localAccount(db, email);
  if (local === undefined) {
    const user = { email, emailVerified, roles: schema.register.roles, passwordHash: undefined };
    const made = await users.insert(db, user, async (tx, userId) => {
      await link(tx, identity, userId);
      await record(tx, { event: 'register', userId, client, detail: { issuer: identity.issuer } });
    });
    return made.id;
  }
  if (!emailVerified || !local.emailVerified || local.disabled) {
    const detail = 'an account with this email exists; sign in to it in the way that it was made with';
    throw new Problem('account_exists', detail);
  }
  await db.transaction(async (tx) => {
    // The address may have been lost meanwhile: the row is read again under its lock.
    const [still] = await tx.rows(
      sql`SELECT email_verified AND NOT disabled AND email = ${param('text', email)} FROM "users" WHERE id = ${param('uuid', local.id)} FOR UPDATE`,
    );
    if (still?.[0] !== 't') throw new Problem('account_exists', 'the account with this email has changed meanwhile');
    await link(tx, identity, local.id);
    await record(tx, { event: 'oauth_linked', userId: local.id, client, detail: { issuer: identity.issuer } });
  });
  return local.id;
}

function emailOf({ email }: Identity): string {
  if (email === undefined) throw new Problem('oauth_failed', 'the provider did not tell an email address');
  const normal = normalEmail(email);
  try {
    checkEmail(normal);
  } catch (cause) {
    throw new Problem('oauth_failed', 'the provider told an email address that cannot be used here', { cause });
  }
  return normal;
}

async function localAccount(db: Queryable, email: string) {
  const [cells] = await db.rows(
    sql`SELECT id, email_verified, disabled FROM "users" WHERE email = ${param('text', email)}`,
  );
  return cells && { id: cells[0]!, emailVerified: cells[1] === 't', disabled: cells[2] === 't' };
}

async function link(tx: Queryable, { issuer, subject }: Identity, userId: string): Promise<void> {
  await tx.run(
    sql`INSERT INTO "_auth_identities" (issuer, subject, user_id, created_at) VALUES (${param('text', issuer)}, ${param('text', subject)}, ${param('uuid', userId)}, now())`,
  );
}
