/**
 * Maps an identity at a provider to a user. An account is joined with an identity only when both
 * sides have proved the address: neither can a stranger's provider take over an account, nor can an
 * account that a stranger made wait for its owner (pre-hijacking). An admin is joined only from a
 * session of its own, because one provider that asserts addresses carelessly would be enough to
 * take over the service.
 */
import { namedCells, readStrings } from '../../database/cells.ts';
import type { Database, Queryable, Transaction } from '../../database/contract.ts';
import { Problem } from '../../problem.ts';
import { effectiveRoles } from '../../schema/model/effective-roles.ts';
import type { Schema } from '../../schema/model/model.ts';
import { normalEmail } from '../../schema/model/normal-email.ts';
import { type Sql, sql, text, uuid } from '../../sql.ts';
import { emailAddress } from '../accounts/email-address.ts';
import { requireOpenRegistration } from '../accounts/registration.ts';
import type { Users } from '../accounts/users.ts';
import { type RequestClient, recordAudit } from '../audit-trail.ts';

export interface Identity {
  readonly issuer: string;
  readonly subject: string;
  readonly email: unknown;
  /** The provider states this with a JSON `true` in the document that contains the email. */
  readonly isEmailVerified: boolean;
}

export interface SignIn {
  readonly identity: Identity;
  /** The user in whose session the flow was started. */
  readonly sessionUserId: string | undefined;
  readonly client: RequestClient;
}

type ProviderDocument = Readonly<Record<string, unknown>>;

/**
 * The identity by OpenID Connect. The identity token names the subject. The email and its
 * verification come from one document, because two could name different addresses: the userinfo if
 * it has an email, else the token. Throws `oauth_failed`.
 */
export function openIdIdentity(issuer: string, claims: ProviderDocument, userinfo: ProviderDocument): Identity {
  return identityOf(issuer, claims.sub, Object.hasOwn(userinfo, 'email') ? userinfo : claims);
}

/** The identity by the profile of a preset without OpenID Connect. Throws `oauth_failed`. */
export function profileIdentity(issuer: string, profile: ProviderDocument): Identity {
  return identityOf(issuer, profile.sub ?? profile.id, profile);
}

function identityOf(issuer: string, subject: unknown, document: ProviderDocument): Identity {
  return {
    issuer,
    subject: providerSubjectOf(subject),
    email: document.email,
    isEmailVerified: document.email_verified === true,
  };
}

function providerSubjectOf(subject: unknown): string {
  if (typeof subject === 'string' && subject !== '') return subject;
  // JSON numbers beyond 2^53 are read as their neighbours: two people would become one.
  if (Number.isSafeInteger(subject)) return String(subject);
  throw new Problem('oauth_failed', 'the provider did not say who signed in');
}

interface LocalAccount {
  readonly id: string;
  readonly isEmailVerified: boolean;
  readonly isDisabled: boolean;
  readonly isAdmin: boolean;
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

  /** Returns the user's id. Throws `account_exists`, `oauth_denied`, `oauth_failed`, `validation_failed`. */
  async signIn(signIn: SignIn): Promise<string> {
    return (await this.#linkedUser(signIn.identity)) ?? (await this.#newLink(signIn));
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

  async #newLink(signIn: SignIn): Promise<string> {
    const email = emailOf(signIn.identity);
    const local = await this.#localAccount(this.#db, sql`email = ${text(email)}`);
    return local === undefined ? this.#register(email, signIn) : this.#join(local.id, email, signIn);
  }

  async #register(email: string, { identity, client }: SignIn): Promise<string> {
    requireOpenRegistration(this.#schema);
    const { issuer, isEmailVerified: emailVerified } = identity;
    const { roles } = this.#schema.register;
    const user = { email, emailVerified, roles, passwordHash: undefined, isOfVisitor: true };
    const { id } = await this.#users.insert(user, async (tx, userId) => {
      await linkIdentity(tx, identity, userId);
      await recordAudit(tx, { event: 'register', userId, client, detail: { issuer } });
    });
    return id;
  }

  async #join(id: string, email: string, signIn: SignIn): Promise<string> {
    const { identity, client } = signIn;
    await this.#db.transaction(async (tx) => {
      // The locked row decides: the address or the roles may be changing.
      const local = await this.#localAccount(
        tx,
        sql`id = ${uuid(id)}
            AND email = ${text(email)}
            FOR UPDATE`,
      );
      if (local === undefined) throw accountExists('the account with this email has changed meanwhile; try again');
      requireJoinable(local, signIn);
      await linkIdentity(tx, identity, id);
      await recordAudit(tx, { event: 'oauth_linked', userId: id, client, detail: { issuer: identity.issuer } });
    });
    return id;
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
function requireJoinable(local: LocalAccount, { identity, sessionUserId }: SignIn): void {
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

async function linkIdentity(tx: Transaction, { issuer, subject }: Identity, userId: string): Promise<void> {
  await tx.run(sql`
    INSERT INTO "_auth_identities" (issuer, subject, user_id, created_at)
    VALUES (${text(issuer)}, ${text(subject)}, ${uuid(userId)}, now())`);
}
