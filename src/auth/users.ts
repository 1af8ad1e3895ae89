/** The users' rows as this room needs them: the user of the API, and the caller that policies read. */
import { v7 } from 'uuid';
import { Problem } from '../problem.ts';
import { FIELD_KINDS, ID_KIND } from '../schema/fields/index.ts';
import type { Collection, Schema } from '../schema/model.ts';
import { effectiveRoles } from '../schema/roles.ts';
import { ident, join, param, type Sql, sql } from '../sql.ts';
import { type Cells, type Database, type Queryable, StoreError, type Transaction } from '../store/database/contract.ts';
import { touched } from '../store/records/touched.ts';
import { beginRoleTrail } from './role-history.ts';

/** As every route shows it: `{ id, email, email_verified, roles, created_at, updated_at, …fields and belongs_to that the schema adds }`. */
export type User = Readonly<Record<string, unknown>> & {
  readonly id: string;
  readonly email: string;
  readonly email_verified: boolean;
  readonly roles: readonly string[];
};

export interface NewUser {
  readonly email: string;
  readonly emailVerified: boolean;
  readonly roles: readonly string[];
  readonly passwordHash: string | undefined;
}

export interface Users {
  /** Of the row `alias`; `read` takes as many cells from `at` on. */
  columns(alias: string): Sql;
  readonly width: number;
  read(cells: Cells, at: number): User;
  byId(db: Queryable, id: string): Promise<User | undefined>;
  byEmail(db: Queryable, email: string): Promise<User | undefined>;
  /** Throws `email_taken`. Uniqueness is told of at the commit only, so the whole transaction runs in here. */
  insert(db: Database, user: NewUser, also: (tx: Transaction, id: string) => Promise<void>): Promise<User>;
  setRoles(db: Queryable, id: string, roles: readonly string[]): Promise<void>;
  /** As `schema/roles.ts` has it. */
  effectiveRoles(roles: readonly string[]): readonly string[];
}

interface Column {
  readonly name: string;
  readonly select: (alias: string) => Sql;
  readonly read: (cell: string) => unknown;
}

const FIRST = ['id', 'email', 'email_verified', 'roles', 'created_at', 'updated_at'];

export const normalEmail = (email: string): string => email.toLowerCase();

/** RFC 5321 §4.5.3.1.3. The routes are stricter; this is what the table can keep and a mail can be sent to. */
export function checkEmail(email: string): void {
  if (/^[\x21-\x7e]{1,254}$/.test(email) && /^[^@]+@[^@]+$/.test(email)) return;
  const detail = 'expected an email address';
  throw new Problem('validation_failed', detail, { errors: [{ pointer: '/email', code: 'invalid_value', detail }] });
}

export function createUsers(schema: Schema): Users {
  const collection = schema.collections.get('users')!;
  const table = ident(collection.table);
  const columns = columnsOf(collection);
  const one = async (db: Queryable, where: Sql): Promise<User | undefined> => {
    const [cells] = await db.rows(sql`SELECT ${users.columns('u')} FROM ${table} u WHERE ${where}`);
    return cells === undefined ? undefined : users.read(cells, 0);
  };
  const insertRows = async (tx: Transaction, user: NewUser): Promise<string> => {
    const id = v7();
    const values = new Map<string, Sql>([
      ['id', sql`${param('uuid', id)}`],
      ['email', sql`${param('text', normalEmail(user.email))}`],
      ['email_verified', sql`${param('bool', user.emailVerified)}`],
      ['roles', sql`${param('text[]', user.roles)}`],
      ['created_at', sql`now()`],
      ['updated_at', sql`now()`],
      ...defaultsOf(collection),
    ]);
    const names = join(
      [...values.keys()].map((name) => ident(name)),
      ', ',
    );
    await tx.run(sql`INSERT INTO ${table} (${names}) VALUES (${join([...values.values()], ', ')})`);
    await tx.run(
      sql`INSERT INTO "_auth_accounts" (user_id, password_hash, password_changed_at) VALUES (${param('uuid', id)}, ${param('text', user.passwordHash ?? null)}, now())`,
    );
    return id;
  };
  const users: Users = {
    columns: (alias) =>
      join(
        columns.map((column) => column.select(alias)),
        ', ',
      ),
    width: columns.length,
    read(cells, at) {
      const user: Record<string, unknown> = {};
      columns.forEach((column, i) => {
        const cell = cells[at + i]!;
        user[column.name] = cell === null ? null : column.read(cell);
      });
      return user as User;
    },
    byId: (db, id) => one(db, sql`u.id = ${param('uuid', id)}`),
    byEmail: (db, email) => one(db, sql`u.email = ${param('text', normalEmail(email))}`),
    insert: (db, user, also) =>
      emailOnce(() =>
        db.transaction(async (tx) => {
          const id = await insertRows(tx, user);
          await beginRoleTrail(tx, id);
          await also(tx, id);
          return (await users.byId(tx, id))!;
        }),
      ),
    async setRoles(db, id, roles) {
      await db.run(
        sql`UPDATE ${table} SET roles = ${param('text[]', roles)}, ${touched()} WHERE id = ${param('uuid', id)}`,
      );
    },
    effectiveRoles: (roles) => effectiveRoles(schema, roles),
  };
  return users;
}

async function emailOnce<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof StoreError && error.kind === 'unique')) throw error;
    const detail = 'an account with this email exists';
    throw new Problem('email_taken', detail, {
      errors: [{ pointer: '/email', code: 'email_taken', detail }],
      cause: error,
    });
  }
}

function columnsOf(collection: Collection): readonly Column[] {
  const plain = (name: string, column: string, read: (cell: string) => unknown): Column => ({
    name,
    select: (alias) => ident(alias, column),
    read,
  });
  const found = new Map<string, Column>([['id', plain('id', 'id', ID_KIND.fromCell)]]);
  found.set('roles', {
    name: 'roles',
    select: (alias) => sql`array_to_json(${ident(alias, 'roles')})::text`,
    read: (cell) => JSON.parse(cell) as string[],
  });
  for (const field of collection.fields.values()) {
    if (!found.has(field.name))
      found.set(field.name, plain(field.name, field.column, FIELD_KINDS[field.type].fromCell));
  }
  for (const relation of collection.relations.values()) {
    if (relation.kind === 'belongs_to')
      found.set(relation.name, plain(relation.name, relation.column, ID_KIND.fromCell));
  }
  return [...FIRST.map((name) => found.get(name)!), ...[...found.values()].filter(({ name }) => !FIRST.includes(name))];
}

/** Of the fields that the schema adds; nobody is signed in at a registration, so a default from the caller is none. */
function defaultsOf(collection: Collection): readonly (readonly [string, Sql])[] {
  return [...collection.fields.values()].flatMap((field) => {
    if (FIRST.includes(field.name) || field.default === undefined || field.default.kind === 'auth') return [];
    const value =
      field.default.kind === 'now' ? sql`now()` : sql`${param(FIELD_KINDS[field.type].sqlType, field.default.value)}`;
    return [[field.column, value] as const];
  });
}
