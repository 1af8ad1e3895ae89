/**
 * Invitations: an account with given roles for the holder of an address. Only the hash of the token in the
 * last mail is stored. An invitation ends with its maker, and with the maker's right to assign its roles.
 */
import { v7 } from 'uuid';
import { namedCells, readTextArray } from '../../database/cells.ts';
import type { Cells, Queryable, Transaction } from '../../database/contract.ts';
import { Problem, problemOfError } from '../../problem.ts';
import type { SystemValues } from '../../records/system.ts';
import { isAdministrator, mayAssign, mayAssignSome, unknownRole } from '../../records/write/role-changes.ts';
import { effectiveRoles } from '../../schema/model/effective-roles.ts';
import { normalEmail } from '../../schema/model/normal-email.ts';
import { apiTime, empty, param, seconds, sql, text, uuid } from '../../sql.ts';
import { type RequestClient, recordAudit } from '../audit-trail.ts';
import type { ClaimedMail } from '../mail/outbox.ts';
import { hashSecret, isSecret, newSecret } from '../sessions/secrets.ts';
import type { AccountParts, Accounts } from './accounts.ts';
import type { Administrator } from './administration.ts';
import { checkNewPassword } from './passwords.ts';
import { emailTaken } from './users.ts';

export interface InviteRequest {
  readonly email: string;
  readonly roles: readonly string[];
}

export interface Invite extends InviteRequest {
  /** Values of fields of the new user, each of its type. */
  readonly values: SystemValues;
}

export interface ListedInvite {
  readonly id: string;
  readonly email: string;
  readonly roles: readonly string[];
  readonly data: SystemValues;
  readonly created_at: string;
  readonly expires_at: string;
  readonly created_by: string;
}

export interface InviteConfirmation {
  readonly token: string;
  readonly password: string;
  readonly client: RequestClient;
}

/** Seconds: seven days. */
const INVITATION_LIFETIME = 604_800;
const MOST_LISTED = 1_000;

interface InvitationParts extends AccountParts {
  readonly accounts: Accounts;
}

export class Invitations {
  readonly #parts: InvitationParts;

  constructor(parts: InvitationParts) {
    this.#parts = parts;
  }

  /**
   * Checks an invitation before its values. Throws `forbidden` unless the caller assigns each role, and assigns any;
   * `validation_failed`, `email_taken`.
   */
  async check({ email, roles }: InviteRequest, { caller }: Administrator): Promise<void> {
    const { db, schema, users } = this.#parts;
    const errors = roles.flatMap((name, i) => unknownRole(schema, name, `/roles/${i}`));
    if (!mayAssignSome(schema, caller.auth)) throw forbiddenInvite('your roles assign none');
    if (errors.length > 0) throw new Problem('validation_failed', 'the invitation is not valid', { errors });
    const foreign = roles.find((name) => !mayAssign(schema, caller.auth, name));
    if (foreign !== undefined) throw forbiddenInvite(`none of your roles assigns \`${foreign}\``);
    if ((await users.byEmail(db, email)) !== undefined) throw emailTaken();
  }

  /** Inserts the user of an invitation, in a transaction that is undone. Returns its id. */
  async tryUser(tx: Transaction, { email, roles }: InviteRequest): Promise<string> {
    const user = { email, emailVerified: true, roles, passwordHash: undefined };
    return this.#parts.users.insertIn(tx, user);
  }

  /** The values of such a user, by their names. */
  async valuesOf(tx: Transaction, id: string, names: readonly string[]): Promise<SystemValues> {
    const user = await this.#parts.users.known(tx, id);
    return Object.fromEntries(names.map((name) => [name, user[name]]));
  }

  /** Invites, or sends again with these roles and values. After `check`. Throws `rate_limited`. */
  async invite({ email, roles, values }: Invite, { caller, client }: Administrator): Promise<void> {
    const { db, limiter, outbox } = this.#parts;
    await limiter.invite(caller.principal, email);
    const address = normalEmail(email);
    await db.transaction(async (tx) => {
      await tx.run(sql`
        INSERT INTO "_auth_invites" (id, email, roles, data, created_at, expires_at, created_by)
        VALUES (${uuid(v7())}, ${text(address)}, ${param('text[]', [...new Set(roles)])},
                ${text(JSON.stringify(values))}, now(), now() + ${seconds(INVITATION_LIFETIME)}, ${uuid(caller.principal)})
            ON CONFLICT (email) DO UPDATE
           SET roles = EXCLUDED.roles,
               data = EXCLUDED.data,
               expires_at = EXCLUDED.expires_at,
               created_by = EXCLUDED.created_by,
               hash = NULL`);
      await outbox.insert(tx, { kind: 'invite', address, detail: { client, actorId: caller.principal } });
      const detail = { email: address, roles };
      await recordAudit(tx, { event: 'user_invited', actorId: caller.principal, client, detail });
    });
    outbox.wake();
  }

  /** Makes the token of a mail; undefined: the invitation is over. The mails before have no use any more. */
  async issueToken({ address }: ClaimedMail): Promise<string | undefined> {
    const { db, users } = this.#parts;
    if ((await users.byEmail(db, address)) !== undefined) return undefined;
    const token = newSecret();
    const found = await db.run(sql`
      UPDATE "_auth_invites"
         SET hash = ${text(hashSecret(token))}
       WHERE email = ${text(address)}
         AND expires_at > now()`);
    return found > 0 ? token : undefined;
  }

  /** Lists the caller's own invitations, and those of all for an admin; newest first. */
  async list({ caller }: Administrator): Promise<readonly ListedInvite[]> {
    const rows = await this.#parts.db.rows(sql`
      SELECT id, email, roles, data, ${apiTime(sql`created_at`)}, ${apiTime(sql`expires_at`)}, created_by
        FROM "_auth_invites"
       WHERE expires_at > now() ${ownOnly(caller)}
       ORDER BY id DESC
       LIMIT ${param('int8', MOST_LISTED)}`);
    return rows.map(listedInvite);
  }

  /** Throws `not_found`, also for the invitation of another, unless the caller is an admin. */
  async remove(id: string, { caller, client }: Administrator): Promise<void> {
    await this.#parts.db.transaction(async (tx) => {
      const [cells] = await tx.rows(sql`
        DELETE FROM "_auth_invites"
         WHERE id = ${uuid(id)} ${ownOnly(caller)}
     RETURNING email`);
      if (cells === undefined) throw new Problem('not_found', 'you have no such invitation');
      const detail = { email: cells[0] };
      await recordAudit(tx, { event: 'invite_removed', actorId: caller.principal, client, detail });
    });
  }

  /** Makes the account, with a verified address. Throws `validation_failed`, `email_taken`, `rate_limited`. */
  async confirm({ token, password, client }: InviteConfirmation, guest?: string): Promise<void> {
    const { db, users, passwords, limiter, accounts } = this.#parts;
    const found = isSecret(token) ? await this.#find(db, token) : undefined;
    if (found === undefined) {
      await limiter.wrongToken(client);
      throw badInvite();
    }
    checkNewPassword(password, found.email, '/password');
    const passwordHash = await passwords.hash(password);
    const user = { ...found, emailVerified: true, passwordHash, isOfVisitor: true };
    try {
      await users.insert(user, async (tx, userId) => {
        if (!(await this.#use(tx, token))) throw badInvite();
        await accounts.endGuest(tx, guest, userId);
        const detail = { invite: found.id, ...(guest !== undefined && { guest }) };
        await recordAudit(tx, { event: 'register', userId, actorId: found.createdBy, client, detail });
      });
    } catch (error) {
      // A concurrent use of the token was faster.
      const isTaken = error instanceof Problem && error.code === 'email_taken';
      if (isTaken && (await this.#find(db, token)) === undefined) throw badInvite();
      throw error;
    }
    await accounts.guestEnded(guest);
  }

  /** Finds the invitation of a token whose maker may still assign its roles. */
  async #find(db: Queryable, token: string) {
    const { schema } = this.#parts;
    const [cells] = await db.rows(sql`
      SELECT i.id, i.email, i.roles, i.data, i.created_by, u.roles
        FROM "_auth_invites" i
        JOIN "users" u ON u.id = i.created_by
       WHERE i.hash = ${text(hashSecret(token))}
         AND i.expires_at > now()
         AND NOT u.disabled`);
    if (cells === undefined) return undefined;
    const { id, email, roles, data, createdBy, makersRoles } = namedCells(
      cells,
      'id',
      'email',
      'roles',
      'data',
      'createdBy',
      'makersRoles',
    );
    const maker = { roles: effectiveRoles(schema, readTextArray(makersRoles)) };
    const given = readTextArray(roles);
    const mayGive = mayAssignSome(schema, maker) && given.every((name) => mayAssign(schema, maker, name));
    if (!mayGive) return undefined;
    return { id, email, roles: given, values: JSON.parse(data) as SystemValues, createdBy };
  }

  /** Returns false for the later of two concurrent uses. */
  async #use(tx: Transaction, token: string): Promise<boolean> {
    if ((await this.#find(tx, token)) === undefined) return false;
    const deleted = await tx.run(sql`DELETE FROM "_auth_invites" WHERE hash = ${text(hashSecret(token))}`);
    return deleted > 0;
  }
}

/** Continues a WHERE. */
const ownOnly = ({ auth, principal }: Administrator['caller']) =>
  isAdministrator(auth) ? empty : sql`AND created_by = ${uuid(principal)}`;

function listedInvite(cells: Cells): ListedInvite {
  const { roles, data, ...row } = namedCells(
    cells,
    'id',
    'email',
    'roles',
    'data',
    'created_at',
    'expires_at',
    'created_by',
  );
  return { ...row, roles: readTextArray(roles), data: JSON.parse(data) as SystemValues };
}

const forbiddenInvite = (reason: string): Problem =>
  new Problem('forbidden', `you may invite with roles that your own roles assign; ${reason}`);

function badInvite(): Problem {
  const detail = 'the token is not valid, has expired, or was used before; ask for another invitation';
  return problemOfError('validation_failed', { pointer: '/token', code: 'invalid_token', detail });
}
