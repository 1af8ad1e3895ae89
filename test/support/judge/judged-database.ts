/** A database of which every statement is judged before it is sent. */
import type {
  Database,
  DatabaseSession,
  Queryable,
  Reader,
  ReadOptions,
  StatementTaker,
  Subscription,
  Transaction,
  WriteTarget,
} from '../../../src/database/contract.ts';
import type { Schema } from '../../../src/schema/model/model.ts';
import { raw, type Sql } from '../../../src/sql.ts';
import { Judge, type Offence } from './judge.ts';

/** Throws where a statement would not do on a cluster. `sent` gets the texts of all. */
export async function judged(
  db: Database,
  schema: Schema,
  sent: (statement: Sql) => void = () => undefined,
): Promise<Database> {
  const names = await db.rows(raw(`SELECT DISTINCT proname FROM pg_proc WHERE provolatile <> 'i'`));
  const judge = new Judge(schema, new Set(names.map(([name]) => name!)));
  const fail = (statement: Sql, offences: readonly Offence[]): Sql => {
    if (offences.length > 0) throw new Error(`a cluster would refuse this (${offences.join(', ')}): ${statement.text}`);
    return statement;
  };
  const assert = (statement: Sql): Sql => {
    sent(statement);
    return fail(statement, judge.offences(statement));
  };
  const assertDefinition = (statement: Sql): Sql =>
    fail(
      statement,
      judge.offences(statement).filter((offence) => offence === 'deferrable'),
    );
  return new JudgedDatabase(db, assert, assertDefinition);
}

type Assert = (statement: Sql) => Sql;

function queryable<Q extends Queryable>(q: Q, assert: Assert): Q {
  return {
    ...q,
    rows: async (statement: Sql) => q.rows(assert(statement)),
    run: async (statement: Sql) => q.run(assert(statement)),
  };
}

const reader = (q: Reader, assert: Assert): Reader => ({
  rows: async (statement, options) => q.rows(assert(statement), options),
  run: async (statement) => q.run(assert(statement)),
});

const judgedNode = (node: StatementTaker | undefined, assert: Assert): StatementTaker | undefined =>
  node && {
    ...reader(node, assert),
    write: async (statement, target) => node.write(assert(statement), target),
    ...(node.writeDecided && {
      writeDecided: async (decision, statement) => node.writeDecided!(assert(decision), assert(statement)),
    }),
  };

class JudgedDatabase implements Database {
  readonly kind: Database['kind'];
  /** The records room sends what it sends to a cluster. */
  readonly isCluster = true;
  readonly openSession?: Database['openSession'];
  readonly copyFolder?: NonNullable<Database['copyFolder']>;
  readonly statementInTime?: Sql;
  readonly nodeFor?: NonNullable<Database['nodeFor']>;
  readonly #db: Database;
  readonly #assert: Assert;
  readonly #assertDefinition: Assert;

  constructor(db: Database, assert: Assert, assertDefinition: Assert) {
    this.#db = db;
    this.#assertDefinition = assertDefinition;
    this.#assert = assert;
    this.kind = db.kind;
    const { openSession, copyFolder, statementInTime, nodeFor } = db;
    if (nodeFor !== undefined) this.nodeFor = (...of) => judgedNode(nodeFor(...of), assert);
    if (openSession !== undefined) this.openSession = async () => session(await openSession(), assert);
    if (copyFolder !== undefined) this.copyFolder = (copy) => copyFolder.call(db, copy);
    if (statementInTime !== undefined) this.statementInTime = statementInTime;
  }

  async rows(statement: Sql, options?: ReadOptions) {
    return this.#db.rows(this.#assert(statement), options);
  }
  async run(statement: Sql) {
    return this.#db.run(this.#assert(statement));
  }
  async write(statement: Sql, target?: WriteTarget) {
    return this.#db.write(this.#assert(statement), target);
  }
  replicaFor(callerId: string): Reader {
    return this.nodeFor === undefined ? reader(this.#db.replicaFor(callerId), this.#assert) : this;
  }
  noteWrite(callerId: string) {
    return this.#db.noteWrite(callerId);
  }
  /** Migrations look at all rows; what they define is judged. */
  transaction<T>(work: (tx: Transaction) => Promise<T>, options?: Parameters<Database['transaction']>[1]): Promise<T> {
    const assert = options?.unlimited === true ? this.#assertDefinition : this.#assert;
    return this.#db.transaction((tx) => work({ ...queryable<Queryable>(tx, assert), inTransaction: true }), options);
  }
  listen(subscription: Subscription) {
    return this.#db.listen(subscription);
  }
  notify(channel: string, payload: string) {
    return this.#db.notify(channel, payload);
  }
  ping() {
    return this.#db.ping();
  }
  close() {
    return this.#db.close();
  }
}

const session = (own: DatabaseSession, assert: Assert): DatabaseSession => ({
  ...queryable<Queryable>(own, assert),
  close: () => own.close(),
});
