/** Reads and writes rows of `users`: the user of the API, and the caller that policies see. */
import { v7 } from 'uuid';
import { namedCells } from '../../database/cells.ts';
import { type Cells, type Database, type Queryable, StoreError, type Transaction } from '../../database/contract.ts';
import { present } from '../../invariant.ts';
import { decide } from '../../policy/access.ts';
import { GUEST_ROW } from '../../policy/check/guests.ts';
import { datetimeOf, parseString } from '../../policy/values.ts';
import { Problem, problemOfError } from '../../problem.ts';
import { Store } from '../../records/access-context.ts';
import { toRefusal } from '../../records/constraint-errors.ts';
import type { RecordShape } from '../../records/record-shape.ts';
import { scopeOf } from '../../records/scope.ts';
import { insertSystem, type SystemValues } from '../../records/system.ts';
import { checksFor, failureOfStored } from '../../records/write/checks.ts';
import { touchedAccount } from '../../records/write/written-row.ts';
import type { Refusal } from '../../refusal.ts';
import { rolesOfSession } from '../../schema/model/effective-roles.ts';
import type { Schema } from '../../schema/model/model.ts';
import { normalEmail } from '../../schema/model/normal-email.ts';
import { join, param, type Sql, sql, text, uuid } from '../../sql.ts';
import type { Caller } from '../caller.ts';
import type { Proof } from './proofs.ts';
import { beginRoleHistory } from './role-history.ts';

/** The built-in fields, and the fields and belongs_to that the schema adds. Routes show what `shown` leaves. */
export type User = Readonly<Record<string, unknown>> & {
  readonly id: string;
  readonly email: string;
  readonly email_verified: boolean;
  readonly roles: readonly string[];
};

/** The facts that a session adds to its user. */
export interface SessionFacts {
  /** A second factor was used in the session. */
  readonly secondFactor: boolean;
  /** Canonical text of the last time that the user proved who they are. */
  readonly signedInAt: string | undefined;
  /** The session of the guest that became the user, for an hour. */
  readonly formerGuest?: string | undefined;
}
const NO_SESSION: SessionFacts = { secondFactor: false, signedInAt: undefined };

export interface NewUser {
  readonly email: string;
  readonly emailVerified: boolean;
  readonly roles: readonly string[];
  /** Undefined: the user signs in through a provider. */
  readonly passwordHash: string | undefined;
  /** Values of fields and belongs_to that the schema adds. */
  readonly values?: SystemValues;
  /** The user makes the account, and the checks of the schema hold. */
  readonly isOfVisitor?: boolean;
}

/** The facts about a user that a login needs. */
export interface UserAccount {
  readonly id: string;
  readonly passwordHash: string | undefined;
  readonly isDisabled: boolean;
  readonly isVerified: boolean;
}

export class Users {
  readonly #store: Store;
  readonly #shape: RecordShape;
  readonly #schema: Schema;

  constructor(db: Database, schema: Schema) {
    this.#store = new Store(db, schema);
    this.#shape = this.#store.shape('users');
    this.#schema = schema;
  }

  /** Selects the columns of the row `alias`; `read` takes their cells. */
  columns(alias: string): Sql {
    return this.#shape.columns(alias);
  }

  /** Reads the cells that begin at `from`. */
  read(cells: Cells, from: number): User {
    return this.#shape.row(cells, from) as User;
  }

  /** Reads a user that exists in this transaction. */
  async known(tx: Transaction, id: string): Promise<User> {
    return present(await this.byId(tx, id), 'the user');
  }

  byId(db: Queryable, id: string): Promise<User | undefined> {
    return this.#find(db, sql`u.id = ${uuid(id)}`);
  }

  /** The user as policies see it in a session. */
  caller(user: User, { secondFactor, signedInAt, formerGuest }: SessionFacts): Caller['auth'] {
    const roles = Object.freeze(rolesOfSession(this.#schema, user.roles, secondFactor));
    const facts = { second_factor: secondFactor, signed_in_at: signedInAt, former_guest: formerGuest };
    return Object.freeze({ ...user, roles, ...facts });
  }

  /** Removes the fields whose rules hide them from the user itself. Default: outside a session. */
  async shown(db: Queryable, user: User, auth = this.caller(user, NO_SESSION)): Promise<User> {
    const request = { auth, query: {}, now: datetimeOf(new Date()) };
    const rules = [...this.#shape.collection.memberAccess].flatMap(([name, { read }]) =>
      read === undefined ? [] : [{ name, permit: decide({ rules: read, request }) }],
    );
    if (rules.length === 0) return user;
    const conditions = rules.map(({ permit }) => sql`(${permit.where('u')})`);
    const [cells] = await db.rows(sql`
      SELECT ${join(conditions, ', ')}
        FROM ${scopeOf({ store: this.#store })
          .from('users', 'u')
          .where(sql`u.id = ${uuid(user.id)}`)}`);
    const hidden = new Set(rules.filter((_, i) => cells?.[i] !== 't').map(({ name }) => name));
    return Object.fromEntries(Object.entries(user).filter(([name]) => !hidden.has(name))) as User;
  }

  async byEmail(db: Queryable, email: string): Promise<User | undefined> {
    if (parseString(email) === undefined) return undefined;
    return this.#find(db, sql`u.email = ${text(normalEmail(email))}`);
  }

  async accountOf(db: Queryable, email: string): Promise<UserAccount | undefined> {
    if (parseString(email) === undefined) return undefined;
    const [cells] = await db.rows(sql`
      SELECT u.id, a.password_hash, u.disabled, u.email_verified
        FROM "users" u
        LEFT JOIN "_auth_accounts" a ON a.user_id = u.id
       WHERE u.email = ${text(normalEmail(email))}`);
    if (cells === undefined) return undefined;
    const [, passwordHash, isDisabled, isVerified] = cells;
    return {
      ...namedCells(cells, 'id'),
      passwordHash: passwordHash ?? undefined,
      isDisabled: isDisabled === 't',
      isVerified: isVerified === 't',
    };
  }

  /** Throws `email_taken`, `validation_failed`. `also` is part of the transaction. */
  async insert(user: NewUser, also: (tx: Transaction, id: string) => Promise<void>): Promise<User> {
    try {
      const { db } = this.#store;
      const made = await db.transaction(async (tx) => {
        const id = await this.insertIn(tx, user);
        await beginRoleHistory(tx, id);
        await also(tx, id);
        if (user.isOfVisitor === true) await this.#requireChecks(tx, id);
        return this.known(tx, id);
      });
      await db.noteWrite(made.id);
      return made;
    } catch (error) {
      throw error instanceof StoreError && error.kind === 'unique' ? this.#taken(error) : error;
    }
  }

  /** An invitation brings other values that are unique. */
  #taken(error: StoreError): Problem {
    const refusal = toRefusal(error, this.#store.shape('users').collection) as Refusal;
    const member = /^\/data\/(.+)$/.exec(refusal.errors[0]?.pointer ?? '')?.[1] ?? 'email';
    if (member === 'email') return emailTaken(error);
    const detail = `another user has the \`${member}\` of this invitation; ask for a new one`;
    return problemOfError('unique_violation', { pointer: '', code: 'unique_violation', detail }, error);
  }

  /** A visitor who makes an account is a caller without a session. */
  async #requireChecks(tx: Transaction, id: string): Promise<void> {
    const { collection } = this.#store.shape('users');
    const visitor = { auth: GUEST_ROW, kind: 'guest', now: datetimeOf(new Date()) } as const;
    const failure = await failureOfStored(
      { store: this.#store, q: tx },
      { collection: 'users', id },
      checksFor(collection, visitor),
    );
    if (failure === undefined) return;
    // The body of a registration has none of the fields.
    const errors = failure.errors.map((error) => ({ ...error, pointer: '' }));
    throw new Problem('validation_failed', [...new Set(errors.map(({ detail }) => detail))].join('; '), { errors });
  }

  async setRoles(db: Queryable, id: string, roles: readonly string[]): Promise<void> {
    await db.run(sql`
      UPDATE "users"
         SET roles = ${param('text[]', roles)},
             ${touchedAccount(datetimeOf(new Date()))}
       WHERE id = ${uuid(id)}`);
  }

  async storePassword(db: Queryable, id: string, hash: string): Promise<void> {
    await db.run(sql`
      INSERT INTO "_auth_accounts" (user_id, password_hash, password_changed_at)
      VALUES (${uuid(id)}, ${text(hash)}, now())
          ON CONFLICT (user_id) DO UPDATE
         SET password_hash = EXCLUDED.password_hash,
             password_changed_at = EXCLUDED.password_changed_at`);
  }

  /** The same password with today's parameters. Another password stays. */
  async storeRehash(db: Queryable, { userId, passwordHash }: Proof, hash: string): Promise<void> {
    await db.run(sql`
      UPDATE "_auth_accounts"
         SET password_hash = ${text(hash)}
       WHERE user_id = ${uuid(userId)}
         AND password_hash = ${text(passwordHash ?? null)}`);
  }

  /** Returns false if the address was proved before. */
  async proveEmail(db: Queryable, id: string): Promise<boolean> {
    const changed = await db.run(sql`
      UPDATE "users"
         SET email_verified = true,
             ${touchedAccount(datetimeOf(new Date()))}
       WHERE id = ${uuid(id)}
         AND NOT email_verified`);
    return changed > 0;
  }

  /** The new address is proved. Throws StoreError (`unique`) if another account has it. */
  async changeEmail(tx: Transaction, id: string, email: string): Promise<void> {
    await tx.run(sql`
      UPDATE "users"
         SET email = ${text(email)},
             email_verified = true,
             ${touchedAccount(datetimeOf(new Date()))}
       WHERE id = ${uuid(id)}`);
  }

  async insertIn(tx: Transaction, user: NewUser): Promise<string> {
    const { emailVerified, roles, passwordHash } = user;
    const own = { id: v7(), email: normalEmail(user.email), email_verified: emailVerified, roles };
    const values = { ...user.values, ...own };
    const id = await insertSystem(this.#store, tx, { collection: 'users', values });
    await tx.run(sql`
      INSERT INTO "_auth_accounts" (user_id, password_hash, password_changed_at)
      VALUES (${uuid(id)}, ${text(passwordHash ?? null)}, now())`);
    return id;
  }

  async #find(db: Queryable, where: Sql): Promise<User | undefined> {
    const [cells] = await db.rows(sql`
      SELECT ${this.columns('u')}
        FROM ${scopeOf({ store: this.#store }).from('users', 'u').where(where)}`);
    return cells && this.read(cells, 0);
  }
}

export function emailTaken(cause?: unknown): Problem {
  const detail = 'an account with this email exists';
  return problemOfError('email_taken', { pointer: '/email', code: 'email_taken', detail }, cause);
}
