/** Administers accounts for the command line and the start of the service, without asking any permission. */

import { StoreError } from '../../database/contract.ts';
import { present } from '../../invariant.ts';
import { datetimeOf } from '../../policy/values.ts';
import { Problem } from '../../problem.ts';
import { unknownRole } from '../../records/write/role-changes.ts';
import { touchedAccount } from '../../records/write/written-row.ts';
import { effectiveRoles } from '../../schema/model/effective-roles.ts';
import type { Schema } from '../../schema/model/model.ts';
import { normalEmail } from '../../schema/model/normal-email.ts';
import { param, sql, uuid } from '../../sql.ts';
import { type AuditQuery, type AuditRow, type RequestClient, readAudit, recordAudit } from '../audit-trail.ts';
import type { Caller } from '../caller.ts';
import type { SecondFactors } from '../factors/second-factors.ts';
import type { SessionRow } from '../sessions/sessions.ts';
import { type AccountQuery, type ListedAccount, readAccounts } from './account-list.ts';
import type { AccountParts } from './accounts.ts';
import { checkEmail } from './email-address.ts';
import { moveAccount } from './email-change.ts';
import type { PasswordClaim } from './password-check.ts';
import { checkNewPassword } from './passwords.ts';
import { recordRoles } from './role-history.ts';
import type { SetupOffer } from './setup-offer.ts';
import { hasAdmin, hasOtherAdmin, requireOtherAdmin } from './user-hooks.ts';
import { emailTaken, type User } from './users.ts';

export interface AddedUser {
  readonly email: string;
  /** Undefined: the user sets one by a reset, or signs in through a provider. */
  readonly password?: string | undefined;
  readonly roles: readonly string[];
  /** Default: true. */
  readonly isVerified?: boolean;
}

/** The administrator of a request. Undefined: the operator, at the command line. */
export interface Administrator {
  readonly caller: Caller;
  readonly client: RequestClient;
}

export interface RolesDifference {
  readonly add: readonly string[];
  readonly remove: readonly string[];
}

const actorOfAdministrator = (by: Administrator | undefined) => ({ actorId: by?.caller.principal, client: by?.client });
const isAdmin = (schema: Schema, { roles }: User): boolean => effectiveRoles(schema, roles).includes('admin');

interface AdministrationParts extends Omit<AccountParts, 'tokens' | 'passwordCheck'> {
  /** Undefined: this process makes no first admin. */
  readonly setup: SetupOffer | undefined;
  readonly secondFactors: SecondFactors;
}

/** The request that makes the first admin. */
export interface Setup extends PasswordClaim {
  readonly token: string;
}

const noSetup = (): Problem => new Problem('not_found', 'not found, or not visible to you');

export class Administration {
  readonly #parts: AdministrationParts;

  constructor(parts: AdministrationParts) {
    this.#parts = parts;
  }

  /**
   * Adds the first admin at a start, unless the user exists. Returns false if nothing was changed.
   */
  async ensureAdmin(email: string, password: string): Promise<boolean> {
    const { db, schema, users } = this.#parts;
    if ((await users.byEmail(db, email)) !== undefined) return false;
    try {
      await this.addUser({ email, password, roles: ['admin', ...schema.register.roles] });
      return true;
    } catch (error) {
      // Another node has added it.
      if (error instanceof Problem && error.code === 'email_taken') return false;
      throw error;
    }
  }

  /** Returns true if an enabled admin exists. */
  hasAdmin(): Promise<boolean> {
    return hasAdmin(this.#parts.db, this.#parts.schema);
  }

  /**
   * Adds the first admin on behalf of the holder of the token that the start printed. Throws `not_found` without that
   * token and with an enabled admin; `validation_failed`, `email_taken`.
   */
  async setUp({ token, email, password, client }: Setup): Promise<User> {
    const { db, users, limiter } = this.#parts;
    const made = await this.#parts.setup?.use(token, () => this.#firstAdmin({ email, password, client }));
    if (made === undefined) {
      await limiter.wrongToken(client);
      throw noSetup();
    }
    return users.shown(db, made);
  }

  async #firstAdmin({ email, password, client }: Omit<Setup, 'token'>): Promise<User | undefined> {
    const { schema, users, passwords } = this.#parts;
    if (await this.hasAdmin()) return undefined;
    checkNewPassword(password, email, '/password');
    const roles = [...new Set(['admin', ...schema.register.roles])];
    const passwordHash = await passwords.hash(password);
    return users.insert({ email, emailVerified: true, roles, passwordHash }, async (tx, userId) => {
      if (await hasOtherAdmin(tx, schema, userId)) throw noSetup();
      await recordAudit(tx, { event: 'user_added', userId, client, detail: { roles, setup: true } });
    });
  }

  /** Throws `validation_failed`, `email_taken`. */
  async addUser({ email, password, roles, isVerified = true }: AddedUser, by?: Administrator): Promise<User> {
    const { db, users, passwords } = this.#parts;
    this.#checkRoles(roles);
    checkEmail(email);
    if (password !== undefined) checkNewPassword(password, email, '/password');
    const passwordHash = password === undefined ? undefined : await passwords.hash(password);
    const user = { email, emailVerified: isVerified, roles: [...new Set(roles)], passwordHash };
    const made = await users.insert(user, (tx, userId) =>
      recordAudit(tx, { event: 'user_added', userId, detail: { roles }, ...actorOfAdministrator(by) }),
    );
    if (by !== undefined) await db.noteWrite(by.caller.principal);
    return made;
  }

  /** Throws `not_found`, `validation_failed`. */
  async changeRoles(email: string, { add, remove }: RolesDifference): Promise<User> {
    const { db, users, authenticator } = this.#parts;
    this.#checkRoles(add);
    const { id } = await this.#mustFind(email);
    const changed = await db.transaction(async (tx) => {
      await tx.rows(sql`SELECT 1 FROM "users" WHERE id = ${uuid(id)} FOR UPDATE`);
      const user = await users.known(tx, id);
      const roles = [...new Set([...user.roles, ...add])].filter((name) => !remove.includes(name));
      await users.setRoles(tx, id, roles);
      await recordRoles(tx, id);
      return users.known(tx, id);
    });
    await authenticator.userChanged(id);
    return changed;
  }

  /** Ends all sessions; the new address counts as proved. Throws `not_found`, `validation_failed`, `email_taken`. */
  async changeEmail(email: string, to: string): Promise<User> {
    const { db, users, authenticator } = this.#parts;
    checkEmail(to);
    const { id, email: from } = await this.#mustFind(email);
    const address = normalEmail(to);
    if (address === from) throw new Problem('validation_failed', 'this is the address of the account already');
    const moved = await db
      .transaction(async (tx) => {
        await moveAccount(tx, this.#parts, { userId: id, from, to: address });
        return users.known(tx, id);
      })
      .catch((error: unknown) => {
        throw error instanceof StoreError && error.kind === 'unique' ? emailTaken(error) : error;
      });
    await authenticator.userChanged(id);
    return moved;
  }

  /** Disabling ends all sessions. Throws `not_found`. */
  async setDisabled(email: string, disabled: boolean): Promise<User> {
    const { id } = await this.#mustFind(email);
    return this.#disable(id, disabled);
  }

  /** The same over HTTP, where an enabled admin is always left. Throws `not_found`, `last_admin`. */
  async setDisabledById(id: string, disabled: boolean, by: Administrator): Promise<void> {
    await this.#requireUser(id);
    await this.#disable(id, disabled, by);
  }

  /** For a user who has lost the device. Throws `not_found`. */
  async resetSecondFactor(email: string): Promise<User> {
    const { secondFactors, db, users } = this.#parts;
    const { id } = await this.#mustFind(email);
    await secondFactors.reset(id, {});
    return present(await users.byId(db, id), 'the user');
  }

  /** The same over HTTP. Throws `not_found`. */
  async resetSecondFactorById(id: string, by: Administrator): Promise<void> {
    await this.#requireUser(id);
    await this.#parts.secondFactors.reset(id, actorOfAdministrator(by));
  }

  /** Newest first. Throws `not_found`. */
  async sessionsOf(id: string): Promise<readonly SessionRow[]> {
    await this.#requireUser(id);
    return this.#parts.sessions.list(this.#parts.db, id);
  }

  /** Throws `not_found`. */
  async endSessionsOf(id: string, by: Administrator): Promise<void> {
    const { db, sessions, authenticator } = this.#parts;
    await this.#requireUser(id);
    await db.transaction(async (tx) => {
      const ended = await sessions.endAll(tx, id);
      await recordAudit(tx, { event: 'sessions_ended', userId: id, detail: { ended }, ...actorOfAdministrator(by) });
    });
    await authenticator.userChanged(id);
  }

  async #disable(id: string, disabled: boolean, by?: Administrator): Promise<User> {
    const { db, schema, users, sessions, authenticator } = this.#parts;
    const changed = await db.transaction(async (tx) => {
      if (disabled && by !== undefined && isAdmin(schema, await users.known(tx, id))) {
        await requireOtherAdmin(tx, schema, [id]);
      }
      await tx.run(sql`
        UPDATE "users"
           SET disabled = ${param('bool', disabled)},
               ${touchedAccount(datetimeOf(new Date()))}
         WHERE id = ${uuid(id)}`);
      if (disabled) await sessions.endAll(tx, id);
      await recordAudit(tx, {
        event: disabled ? 'user_disabled' : 'user_enabled',
        userId: id,
        ...actorOfAdministrator(by),
      });
      return users.known(tx, id);
    });
    await authenticator.userChanged(id);
    return changed;
  }

  accounts(query: AccountQuery): Promise<readonly ListedAccount[]> {
    return readAccounts(this.#parts.db, query);
  }

  audit(query: AuditQuery): Promise<readonly AuditRow[]> {
    return readAudit(this.#parts.db, query);
  }

  async #requireUser(id: string): Promise<void> {
    const user = await this.#parts.users.byId(this.#parts.db, id);
    if (user === undefined) throw new Problem('not_found', 'no user has this id');
  }

  #checkRoles(names: readonly string[]): void {
    const { schema } = this.#parts;
    const errors = names.flatMap((name, i) => unknownRole(schema, name, `/roles/${i}`));
    if (errors.length === 0) return;
    const unknown = names.filter((name) => !schema.roles.has(name)).map((name) => `\`${name}\``);
    const known = [...schema.roles.keys()].join(', ');
    throw new Problem('validation_failed', `unknown role ${unknown.join(', ')}; the roles are ${known}`, { errors });
  }

  async #mustFind(email: string): Promise<User> {
    const user = await this.#parts.users.byEmail(this.#parts.db, email);
    if (user === undefined) throw new Problem('not_found', `no user has the email \`${normalEmail(email)}\``);
    return user;
  }
}
