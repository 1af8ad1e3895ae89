/**
 * Measures the cost of a collection that is distributed by tenant: a list and a write of one
 * tenant, beside the same collection in one table.
 */
import type { Database, ReadOptions, WriteTarget } from '../src/database/contract.ts';
import { openDatabase } from '../src/database/open-database.ts';
import { applyMigration } from '../src/migrations/apply-migration.ts';
import { type AccessContext, createRecords, type Records } from '../src/records/records.ts';
import { parseSchema } from '../src/schema/load.ts';
import type { Schema } from '../src/schema/model/model.ts';
import { raw, type Sql, sql } from '../src/sql.ts';
import { isolatedUrl, startPostgres } from '../test/support/postgres.ts';
import type { Bench, BenchOptions } from './support/bench.ts';
import { callerAccess } from './support/caller-access.ts';
import { median, verdict } from './support/measure.ts';

const TENANTS = 10_000;
/** The calls of each contender in a round. */
const CALLS = 200;
const NOW = '2026-01-01T00:00:00.000000Z';
const team = (n: number): string => `00000002-0000-4000-8000-${n.toString(16).padStart(12, '0')}`;
const document = (n: number): string => `00000004-0000-4000-8000-${n.toString(16).padStart(12, '0')}`;
const made = (kind: number, n: string): string =>
  `('0000000${kind}-0000-4000-8000-' || lpad(to_hex(${n}), 12, '0'))::uuid`;

const schemaOf = (distribute: string): Schema => {
  const { schema, issues } = parseSchema(`
roles: [admin, member]
register: { roles: [member] }
collections:
  users: { relations: { team: { kind: belongs_to, collection: teams } }, access: { view: true } }
  teams: { ${distribute === '' ? '' : 'distribute: reference, '}fields: { name: string }, access: { view: true } }
  documents:
    ${distribute}
    fields: { title: { type: string, required: true }, status: { type: string, enum: [draft, published], index: true } }
    relations: { team: { kind: belongs_to, collection: teams, required: true } }
    access: { view: &own '@record.team = @request.auth.team', update: *own }
`);
  if (schema === undefined) throw new Error(JSON.stringify(issues));
  return schema;
};

class Contender {
  readonly name: string;
  readonly #db: Database;
  readonly #schema: Schema;
  readonly #records: Records;
  /** The latest statement on the documents. */
  #sent: Sql | undefined;

  private constructor(name: string, db: Database, schema: Schema) {
    this.name = name;
    this.#db = db;
    this.#schema = schema;
    const noted = (statement: Sql): Sql => {
      this.#sent = statement;
      return statement;
    };
    const watched: Database = Object.create(db, {
      replicaFor: {
        value: () => ({
          rows: (statement: Sql, options?: ReadOptions) =>
            db.rows(options?.lane === 'slow' ? statement : noted(statement), options),
          run: db.run,
        }),
      },
      write: { value: (statement: Sql, target?: WriteTarget) => db.write(noted(statement), target) },
      rows: { value: (...request: Parameters<Database['rows']>) => db.rows(...request) },
      run: { value: (statement: Sql) => db.run(statement) },
      noteWrite: { value: async () => undefined },
      transaction: { value: (...args: Parameters<Database['transaction']>) => db.transaction(...args) },
    });
    this.#records = createRecords(watched, schema);
  }

  static async open(server: string, distribute: string, rows: number): Promise<Contender> {
    const db = await openDatabase({ url: await isolatedUrl(server) });
    const schema = schemaOf(distribute);
    await applyMigration(db, schema);
    const fill = [
      // Each row's reference is known to lead somewhere.
      'SET LOCAL session_replication_role = replica',
      `INSERT INTO teams (id) SELECT ${made(2, 'n')} FROM generate_series(0, ${TENANTS - 1}) AS n`,
      `INSERT INTO documents (id, title, status, team_id)
       SELECT ${made(4, 'n')}, 'document ' || n, (ARRAY['draft', 'published'])[1 + n % 2], ${made(2, `n % ${TENANTS}`)}
         FROM generate_series(0, ${rows - 1}) AS n`,
    ];
    await db.transaction(
      async (tx) => {
        for (const statement of fill) await tx.run(raw(statement));
      },
      { unlimited: true },
    );
    for (const table of ['teams', 'documents']) await db.run(raw(`ANALYZE ${table}`));
    return new Contender(distribute === '' ? 'one table' : 'partitions', db, schema);
  }

  #access(n: number): AccessContext {
    const auth = { id: team(n), team: team(n), roles: ['member'] };
    return callerAccess(this.#schema, 'documents', { auth, now: NOW });
  }

  async list(n: number): Promise<void> {
    const { json } = await this.#records.list(this.#access(n), { limit: 20, offset: 0 });
    if (!String(json).includes(team(n))) throw new Error(`no page of ${team(n)}: ${json}`);
  }

  async write(n: number): Promise<void> {
    const request = { id: document(n), data: { title: `written ${n}` }, errors: [], relations: [] };
    const { json } = await this.#records.update(this.#access(n), request);
    if (json === undefined) throw new Error(`${document(n)} was not written`);
  }

  /** That the latest statement reads or writes, of those of the documents. */
  async partitions(): Promise<number> {
    const [row] = await this.#db.rows(sql`${raw('EXPLAIN (FORMAT JSON) ')}${this.#sent!}`, { lane: 'slow' });
    return new Set(row![0]!.match(/"_documents_\d"/g)).size;
  }

  close(): Promise<void> {
    return this.#db.close();
  }
}

type Work = 'list' | 'write';

/** Microseconds a call. */
async function timed(contender: Contender, work: Work, from: number): Promise<number> {
  const start = performance.now();
  for (let i = 0; i < CALLS; i++) await contender[work]((from + i * 7_919) % TENANTS);
  return ((performance.now() - start) * 1000) / CALLS;
}

async function race([plain, divided]: readonly [Contender, Contender], work: Work, seconds: number): Promise<void> {
  for (const contender of [plain, divided]) await timed(contender, work, 0);
  const reached = await divided.partitions();
  verdict(`partitions that a ${work} of one tenant reaches`, reached, { limit: 1, unit: 'of 8' });
  if (reached !== 1) throw new Error('the statement was not explained');
  const rounds: (readonly [number, number])[] = [];
  const end = performance.now() + seconds * 1000;
  for (let from = 1; performance.now() < end || rounds.length < 5; from += CALLS)
    rounds.push([await timed(plain, work, from), await timed(divided, work, from)]);
  const [alone, parted] = [0, 1].map((i) => median(rounds.map((round) => round[i]!)));
  console.log(
    `       ${work}: ${plain.name} ${alone!.toFixed(0)} µs, ${divided.name} ${parted!.toFixed(0)} µs, ${rounds.length} rounds`,
  );
  const ratio = median(rounds.map(([a, b]) => b / a));
  verdict(`a ${work} of one tenant ÷ the same in one table`, ratio, { limit: 1.2, unit: '×' });
}

async function run({ seconds, rows }: BenchOptions): Promise<void> {
  const server = await startPostgres({ settings: { shared_buffers: '512MB' } });
  if (server === undefined) throw new Error('this bench needs a PostgreSQL');
  const both = [
    await Contender.open(server.url, '', rows),
    await Contender.open(server.url, 'distribute: { by: team }', rows),
  ] as const;
  try {
    for (const work of ['list', 'write'] as const) await race(both, work, seconds);
  } finally {
    for (const contender of both) await contender.close();
    await server.stop();
  }
}

const bench: Bench = {
  name: 'distribute',
  question: 'a list and a write of one of 10,000 tenants, on partitions and in one table',
  run,
};
export default bench;
