/**
 * Maps an identity at a provider to a user. An account is joined with an identity only when both
 * sides have proved the address: neither can a stranger's provider take over an account, nor can an
 * account that a stranger made wait for its owner (pre-hijacking). An admin is joined only from a
 * session of its own, because one provider that asserts addresses carelessly would be enough to
 * take over the service.
 */
import { namedCells, readStrings } from '../../database/cells.ts';
import type { Database, Queryable, Transaction } from '../../database/contract.ts';
import { parseString } from '../../policy/values.ts';
import { Problem } from '../../problem.ts';
import type { SystemValues } from '../../records/system.ts';
import { FIELD_KINDS } from '../../schema/fields/index.ts';
import { effectiveRoles } from '../../schema/model/effective-roles.ts';
import { isUniqueMember, type Schema } from '../../schema/model/model.ts';
import { normalEmail } from '../../schema/model/normal-email.ts';
import { param, type Sql, sql, text, uuid } from '../../sql.ts';
import { emailAddress } from '../accounts/email-address.ts';
import { requireOpenRegistration } from '../accounts/registration.ts';
import type { Users } from '../accounts/users.ts';
import { claimBySignIn, dropAllWaysIn } from '../accounts/ways-in.ts';
import { type RequestClient, recordAudit } from '../audit-trail.ts';
import type { Caller } from '../caller.ts';
import { hasWayIn, lockUser } from '../factors/passkey-rows.ts';
import { type ProviderDocument, TENANT } from '../providers/presets.ts';

export interface Identity {
  readonly issuer: string;
  readonly subject: string;
  readonly email: unknown;
  /** The provider states this with a JSON `true` in the document that contains the email; a preset has its own proof. */
  readonly isEmailVerified: boolean;
  /** The person's name, as far as it is known. */
  readonly name?: unknown;
}

export interface ProviderSignIn {
  readonly identity: Identity;
  /** The user in whose session, which goes on, the flow was started. */
  readonly sessionUserId: string | undefined;
  readonly client: RequestClient;
}

/**
 * The identity by OpenID Connect. The identity token names the subject. The email and its
 * verification come from one document, because two could name different addresses: the userinfo if
 * it has an email, else the token. Throws `oauth_failed`.
 */
export function openIdIdentity(claims: ProviderDocument & { iss: string }, userinfo: ProviderDocument): Identity {
  const document = Object.hasOwn(userinfo, 'email') ? userinfo : claims;
  const name = userinfo.name ?? claims.name;
  return { issuer: claims.iss, subject: providerSubjectOf(claims.sub), ...standardEmail(document), name };
}

/** The identity by the profile of a preset of grant. Throws `oauth_failed`. */
export function profileIdentity(issuer: string, profile: ProviderDocument): Identity {
  const subject = providerSubjectOf(profile.sub ?? profile.id);
  return { issuer, subject, ...standardEmail(profile), name: profile.name };
}

const standardEmail = ({ email, email_verified }: ProviderDocument) => ({
  email,
  isEmailVerified: email_verified === true,
});

/** Characters, by OpenID Connect Core 1.0, section 2. */
const MAX_SUBJECT = 255;

/** Throws `oauth_failed`. */
export function providerSubjectOf(subject: unknown): string {
  if (typeof subject === 'string' && subject !== '') {
    if (subject.length <= MAX_SUBJECT && parseString(subject) !== undefined) return subject;
    throw new Problem('oauth_failed', 'the provider sent a subject that is too long, or not valid Unicode text');
  }
  // JSON numbers beyond 2^53 are read as their neighbours: two people would become one.
  if (Number.isSafeInteger(subject)) return String(subject);
  throw new Problem('oauth_failed', 'the provider did not say who signed in');
}

interface SignedInBy {
  readonly userId: string;
  /** The provider was the first to prove whose the account is: its sessions have ended. */
  readonly isClaimed: boolean;
}

interface LocalAccount {
  readonly id: string;
  readonly isEmailVerified: boolean;
  readonly isDisabled: boolean;
  readonly isAdmin: boolean;
}

interface Unlinked {
  readonly provider: string;
  /** The issuer of the provider, perhaps of several tenants. */
  readonly issuer: string;
  readonly client: RequestClient;
}

export class Identities {
  readonly #db: Database;
  readonly #schema: Schema;
  readonly #users: Users;

  constructor(db: Database, schema: Schema, users: Users) {
    this.#db = db;
    this.#schema = schema;
    this.#users = users;
  }

  /** Throws `account_exists`, `oauth_denied`, `oauth_failed`, `validation_failed`. */
  async signIn(signIn: ProviderSignIn): Promise<SignedInBy> {
    const userId = await this.#linkedUser(signIn.identity);
    return userId === undefined ? this.#newLink(signIn) : { userId, isClaimed: false };
  }

  async #linkedUser({ issuer, subject }: Identity): Promise<string | undefined> {
    const [found] = await this.#db.rows(sql`
      SELECT u.id, u.disabled
        FROM "_auth_identities" i
        JOIN "users" u ON u.id = i.user_id
       WHERE i.issuer = ${text(issuer)}
         AND i.subject = ${text(subject)}`);
    if (found?.[1] === 't') throw new Problem('oauth_denied', 'this account is disabled');
    return found?.[0] ?? undefined;
  }

  async #newLink(signIn: ProviderSignIn): Promise<SignedInBy> {
    const email = emailOf(signIn.identity);
    const local = await this.#localAccount(this.#db, sql`email = ${text(email)}`);
    if (local !== undefined) return this.#join(local.id, email, signIn);
    return { userId: await this.#register(email, signIn), isClaimed: false };
  }

  async #register(email: string, { identity, client }: ProviderSignIn): Promise<string> {
    requireOpenRegistration(this.#schema);
    const { issuer, isEmailVerified: emailVerified } = identity;
    const { roles } = this.#schema.register;
    const values = nameValue(this.#schema, identity.name);
    const user = { email, emailVerified, roles, passwordHash: undefined, values, isOfVisitor: true };
    const { id } = await this.#users.insert(user, async (tx, userId) => {
      await linkNew(tx, identity, userId);
      await recordAudit(tx, { event: 'register', userId, client, detail: { issuer } });
    });
    return id;
  }

  async #join(id: string, email: string, signIn: ProviderSignIn): Promise<SignedInBy> {
    const { identity, client } = signIn;
    const isClaimed = await this.#db.transaction(async (tx) => {
      // The locked row decides: the address or the roles may be changing.
      const local = await this.#localAccount(
        tx,
        sql`id = ${uuid(id)}
            AND email = ${text(email)}
            FOR UPDATE`,
      );
      if (local === undefined) throw accountExists('the account with this email has changed meanwhile; try again');
      requireJoinable(local, signIn);
      const isFirst = (await claimBySignIn(tx, id)) && signIn.sessionUserId !== id;
      if (isFirst) {
        await dropAllWaysIn(tx, id);
        await tx.run(sql`DELETE FROM "_auth_sessions" WHERE user_id = ${uuid(id)}`);
      }
      await linkNew(tx, identity, id);
      await recordAudit(tx, { event: 'oauth_linked', userId: id, client, detail: { issuer: identity.issuer } });
      return isFirst;
    });
    return { userId: id, isClaimed };
  }

  /** Links one's own account. Throws `account_exists` if another account has the identity. */
  async link(userId: string, identity: Identity, client: RequestClient): Promise<void> {
    const { issuer, subject } = identity;
    await this.#db.transaction(async (tx) => {
      await lockUser(tx, userId);
      if (await insertIdentity(tx, identity, userId)) {
        await recordAudit(tx, { event: 'oauth_linked', userId, client, detail: { issuer } });
        return;
      }
      const [cells] = await tx.rows(sql`
        SELECT user_id FROM "_auth_identities" WHERE issuer = ${text(issuer)} AND subject = ${text(subject)}`);
      if (cells?.[0] !== userId) throw accountExists('another account is linked with this identity');
    });
  }

  /** Throws `not_found`, `last_credential`. */
  async unlink({ principal: userId, sessionId }: Caller, { provider, issuer, client }: Unlinked): Promise<void> {
    // The issuer of several tenants matches the issuer of each of them.
    const [before = '', after] = issuer.split(TENANT);
    const isOf = (of: string): boolean =>
      after === undefined ? of === issuer : of.startsWith(before) && of.endsWith(after);
    await this.#db.transaction(async (tx) => {
      await lockUser(tx, userId);
      const rows = await tx.rows(sql`SELECT issuer FROM "_auth_identities" WHERE user_id = ${uuid(userId)}`);
      const issuers = rows.flatMap(([of]) => (typeof of === 'string' && isOf(of) ? [of] : []));
      if (issuers.length === 0) throw new Problem('not_found', 'you are not linked with this provider');
      await tx.run(sql`
        DELETE FROM "_auth_identities"
         WHERE user_id = ${uuid(userId)}
           AND issuer = ANY (${param('text[]', issuers)})`);
      if (!(await hasWayIn(tx, userId)))
        throw new Problem('last_credential', 'this provider is your last way to sign in; set a password first');
      await recordAudit(tx, { event: 'oauth_unlinked', userId, sessionId, client, detail: { provider } });
    });
  }

  async #localAccount(db: Queryable, where: Sql): Promise<LocalAccount | undefined> {
    const [cells] = await db.rows(sql`
      SELECT id, email_verified, disabled, array_to_json(roles)::text
        FROM "users"
       WHERE ${where}`);
    if (cells === undefined) return undefined;
    const roles = effectiveRoles(this.#schema, readStrings(cells[3]));
    return {
      ...namedCells(cells, 'id'),
      isEmailVerified: cells[1] === 't',
      isDisabled: cells[2] === 't',
      isAdmin: roles.includes('admin'),
    };
  }
}

/** Throws `account_exists`. */
function requireJoinable(local: LocalAccount, { identity, sessionUserId }: ProviderSignIn): void {
  if (!identity.isEmailVerified || !local.isEmailVerified || local.isDisabled) {
    throw accountExists('an account with this email exists; sign in to it in the way that it was made with');
  }
  if (local.isAdmin && sessionUserId !== local.id) {
    throw accountExists(
      'an admin has this email; to sign in to it through a provider, sign in with its password first, and start again',
    );
  }
}

const accountExists = (detail: string): Problem => new Problem('account_exists', detail);

/**
 * Validates by the grammar of the routes before lower-casing, so that an address of this provider
 * cannot become another's.
 */
function emailOf({ email }: Identity): string {
  if (email === undefined) throw new Problem('oauth_failed', 'the provider sent no email address');
  const read = emailAddress.safeParse(email);
  if (!read.success) throw new Problem('oauth_failed', 'the provider sent an email address that is not accepted here');
  return normalEmail(read.data);
}

/** The user's field `name`, if the schema has one that takes the name of the person. */
function nameValue({ collections }: Schema, name: unknown): SystemValues {
  const field = collections.get('users')?.fields.get('name');
  if (field === undefined || isUniqueMember(field) || typeof name !== 'string' || name === '') return {};
  const read = FIELD_KINDS[field.type].fromJson(name, field);
  return read.error === undefined ? { name: read.value } : {};
}

/** Throws `account_exists`. */
async function linkNew(tx: Transaction, identity: Identity, userId: string): Promise<void> {
  if (!(await insertIdentity(tx, identity, userId)))
    throw accountExists('an account was linked with this identity meanwhile; try again');
}

/** Returns false if it is linked. */
async function insertIdentity(tx: Transaction, { issuer, subject }: Identity, userId: string): Promise<boolean> {
  const linked = await tx.run(sql`
    INSERT INTO "_auth_identities" (issuer, subject, user_id, created_at)
    VALUES (${text(issuer)}, ${text(subject)}, ${uuid(userId)}, now())
        ON CONFLICT DO NOTHING`);
  return linked > 0;
}
