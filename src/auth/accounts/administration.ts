/** Administers accounts for the command line and the start of the service, without asking any permission. */

import { datetimeOf } from '../../policy/values.ts';
import { Problem } from '../../problem.ts';
import { touchedAccount } from '../../records/write/written-row.ts';
import { normalEmail } from '../../schema/model/normal-email.ts';
import { param, sql, uuid } from '../../sql.ts';
import { type AuditQuery, type AuditRow, readAudit, recordAudit } from '../audit-trail.ts';
import type { AccountParts } from './accounts.ts';
import { checkEmail } from './email-address.ts';
import { checkNewPassword } from './passwords.ts';
import { recordRoles } from './role-history.ts';
import type { User } from './users.ts';

export interface AddedUser {
  readonly email: string;
  readonly password: string;
  readonly roles: readonly string[];
}

export interface RolesDifference {
  readonly add: readonly string[];
  readonly remove: readonly string[];
}

type AdministrationParts = Omit<AccountParts, 'tokens' | 'passwordCheck' | 'limiter'>;

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

  /** Throws `validation_failed`, `email_taken`. */
  async addUser({ email, password, roles }: AddedUser): Promise<User> {
    const { users, passwords } = this.#parts;
    this.#checkRoles(roles);
    checkEmail(email);
    checkNewPassword(password, email, '/password');
    const passwordHash = await passwords.hash(password);
    const user = { email, emailVerified: true, roles: [...new Set(roles)], passwordHash };
    return users.insert(user, (tx, userId) => recordAudit(tx, { event: 'user_added', userId, detail: { roles } }));
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

  /** Disabling ends all sessions. Throws `not_found`. */
  async setDisabled(email: string, disabled: boolean): Promise<User> {
    const { db, users, sessions, authenticator } = this.#parts;
    const { id } = await this.#mustFind(email);
    const changed = await db.transaction(async (tx) => {
      await tx.run(sql`
        UPDATE "users"
           SET disabled = ${param('bool', disabled)},
               ${touchedAccount(datetimeOf(new Date()))}
         WHERE id = ${uuid(id)}`);
      if (disabled) await sessions.endAll(tx, id);
      await recordAudit(tx, { event: disabled ? 'user_disabled' : 'user_enabled', userId: id });
      return users.known(tx, id);
    });
    await authenticator.userChanged(id);
    return changed;
  }

  audit(query: AuditQuery): Promise<readonly AuditRow[]> {
    return readAudit(this.#parts.db, query);
  }

  #checkRoles(names: readonly string[]): void {
    const { roles } = this.#parts.schema;
    const unknown = names.filter((name) => !roles.has(name)).map((name) => `\`${name}\``);
    if (unknown.length === 0) return;
    const known = [...roles.keys()].join(', ');
    throw new Problem('validation_failed', `unknown role ${unknown.join(', ')}; the roles are ${known}`);
  }

  async #mustFind(email: string): Promise<User> {
    const user = await this.#parts.users.byEmail(this.#parts.db, email);
    if (user === undefined) throw new Problem('not_found', `no user has the email \`${normalEmail(email)}\``);
    return user;
  }
}
