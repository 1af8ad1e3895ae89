/** The rows of passkeys, and of the challenges of their ceremonies. */
import { v7 } from 'uuid';
import { namedCells } from '../../database/cells.ts';
import type { Database, Queryable, Transaction } from '../../database/contract.ts';
import { apiTime, param, raw, seconds, sql, text, uuid } from '../../sql.ts';
import { hashSecret } from '../sessions/secrets.ts';
import type { NewCredential, StoredCredential } from './passkey-ceremony.ts';

/** A passkey as routes show it. */
export interface StoredPasskey {
  readonly id: string;
  readonly name: string;
  readonly created_at: string;
  readonly last_used_at: string | null;
}

export interface KnownCredential extends StoredCredential {
  readonly id: string;
  readonly userId: string;
}

const PASSKEY_CHALLENGE_SECONDS = 300;

const PASSKEY_COLUMNS = sql`p.id, p.name, ${apiTime(raw('p.created_at'))}, ${apiTime(raw('p.last_used_at'))}`;

const readPasskey = (cells: readonly (string | null)[]): StoredPasskey => ({
  ...namedCells(cells, 'id', 'name', 'created_at'),
  last_used_at: cells[3] ?? null,
});

/** Newest first. */
export async function passkeysOf(db: Queryable, userId: string): Promise<readonly StoredPasskey[]> {
  const rows = await db.rows(sql`
    SELECT ${PASSKEY_COLUMNS}
      FROM "_auth_passkeys" p
     WHERE p.user_id = ${uuid(userId)}
     ORDER BY p.id DESC`);
  return rows.map(readPasskey);
}

export async function credentialIdsOf(db: Queryable, userId: string): Promise<readonly string[]> {
  const rows = await db.rows(sql`SELECT credential_id FROM "_auth_passkeys" WHERE user_id = ${uuid(userId)}`);
  return rows.flatMap(([id]) => (id === null || id === undefined ? [] : [id]));
}

/** Undefined: the credential is registered, by this user or another. */
export async function insertPasskey(
  tx: Transaction,
  userId: string,
  { name, credentialId, publicKey, counter }: NewCredential & { readonly name: string },
): Promise<StoredPasskey | undefined> {
  const [cells] = await tx.rows(sql`
    INSERT INTO "_auth_passkeys" AS p (id, user_id, name, credential_id, public_key, counter, created_at)
    VALUES (${uuid(v7())}, ${uuid(userId)}, ${text(name)}, ${text(credentialId)}, ${text(publicKey)},
            ${param('int8', counter)}, now())
        ON CONFLICT (credential_id) DO NOTHING
 RETURNING ${PASSKEY_COLUMNS}`);
  return cells && readPasskey(cells);
}

export async function storePasskeyName(
  db: Database,
  userId: string,
  id: string,
  name: string,
): Promise<StoredPasskey | undefined> {
  const [cells] = await db.write(sql`
    UPDATE "_auth_passkeys" p
       SET name = ${text(name)}
     WHERE p.id = ${uuid(id)}
       AND p.user_id = ${uuid(userId)}
 RETURNING ${PASSKEY_COLUMNS}`);
  return cells && readPasskey(cells);
}

export async function deletePasskey(tx: Transaction, userId: string, id: string): Promise<boolean> {
  const deleted = await tx.run(sql`
    DELETE FROM "_auth_passkeys"
     WHERE id = ${uuid(id)}
       AND user_id = ${uuid(userId)}`);
  return deleted > 0;
}

/** Lets two changes of a user's passkeys see each other. */
export async function lockUser(tx: Transaction, userId: string): Promise<void> {
  await tx.rows(sql`SELECT 1 FROM "users" WHERE id = ${uuid(userId)} FOR UPDATE`);
}

export async function hasWayIn(tx: Transaction, userId: string): Promise<boolean> {
  const rows = await tx.rows(sql`
    SELECT 1 FROM "_auth_passkeys" WHERE user_id = ${uuid(userId)}
    UNION ALL
    SELECT 1 FROM "_auth_identities" WHERE user_id = ${uuid(userId)}
    UNION ALL
    SELECT 1 FROM "_auth_accounts" WHERE user_id = ${uuid(userId)} AND password_hash IS NOT NULL
     LIMIT 1`);
  return rows.length > 0;
}

/** Undefined: no enabled user has it. */
export async function findCredential(db: Queryable, credentialId: string): Promise<KnownCredential | undefined> {
  const [cells] = await db.rows(sql`
    SELECT p.id, p.user_id, p.credential_id, p.public_key
      FROM "_auth_passkeys" p
      JOIN "users" u ON u.id = p.user_id
     WHERE p.credential_id = ${text(credentialId)}
       AND u.disabled IS NOT TRUE`);
  return cells && namedCells(cells, 'id', 'userId', 'credentialId', 'publicKey');
}

/** Returns false if the counter went back: the credential has been copied. Some authenticators always send 0. */
export async function countUse(tx: Transaction, id: string, counter: number): Promise<boolean> {
  const changed = await tx.run(sql`
    UPDATE "_auth_passkeys"
       SET counter = ${param('int8', counter)},
           last_used_at = now()
     WHERE id = ${uuid(id)}
       AND (counter < ${param('int8', counter)} OR (counter = 0 AND ${param('int8', counter)} = 0))`);
  return changed > 0;
}

/** @param userId undefined: for a login */
export async function keepChallenge(db: Database, challenge: string, userId?: string): Promise<void> {
  await db.run(sql`
    INSERT INTO "_auth_passkey_challenges" (hash, user_id, expires_at)
    VALUES (${text(hashSecret(challenge))}, ${uuid(userId ?? null)}, now() + ${seconds(PASSKEY_CHALLENGE_SECONDS)})`);
}

/** Returns false if it is unknown, of another use or user, expired, or was taken before. */
export async function takeChallenge(db: Database, challenge: string, userId?: string): Promise<boolean> {
  const rows = await db.write(sql`
    DELETE FROM "_auth_passkey_challenges"
     WHERE hash = ${text(hashSecret(challenge))}
       AND user_id IS NOT DISTINCT FROM ${uuid(userId ?? null)}
       AND expires_at > now()
 RETURNING 1`);
  return rows.length > 0;
}
