/** `bylaw migrate plan | apply | status`: migrates the database to the schema. */
import { applyMigration } from '../migrations/apply-migration.ts';
import { type BrokenRule, brokenRules, brokenRuleText } from '../migrations/broken-rules.ts';
import { type PastMigration, readPastMigrations } from '../migrations/history.ts';
import {
  type Migration,
  MigrationRefused,
  ownersNotes,
  planMigration,
  type RiskyStatement,
} from '../migrations/migration.ts';
import { type OwnersNote, UnservableTables } from '../migrations/unmanaged/differences.ts';
import { migrateOptions } from '../service/system-tables.ts';
import { type Arguments, type CommandGroup, DATABASE_SETTINGS, type Io } from './support/command.ts';
import { writeGivenFile } from './support/given-file.ts';
import { type DatabaseUse, type OpenDatabase, openDatabaseFor } from './support/workspace.ts';

const READING: DatabaseUse = { writes: false };

export const command: CommandGroup = {
  name: 'migrate',
  summary: 'shows or runs the SQL that brings the database to the schema',
  commands: [
    {
      name: 'migrate plan',
      summary: 'prints the SQL, marks the steps that need `migrate apply`, and counts records that break a rule',
      settings: DATABASE_SETTINGS,
      flags: { sql: { value: 'FILE', about: 'writes the plan into a file, for a review' } },
      run: (args, io) => withDatabase(args, io, READING, (opened) => plan(opened, args.get('sql'), io)),
    },
    {
      name: 'migrate apply',
      summary: 'runs the SQL: quick steps in one transaction, then the rest while the tables are in use',
      settings: DATABASE_SETTINGS,
      flags: { 'allow-destructive': { about: 'also runs the statements that lose data' } },
      run: (args, io) =>
        withDatabase(args, io, { writes: true }, (opened) => apply(opened, args.has('allow-destructive'), io)),
    },
    {
      name: 'migrate status',
      summary: 'prints which migrations the database has had, and whether it matches the schema',
      settings: DATABASE_SETTINGS,
      flags: {
        steps: { about: 'also prints the statements of each' },
        json: { about: 'prints JSON: { data: { migrations, pending } }' },
      },
      run: (args, io) => withDatabase(args, io, READING, (opened) => status(opened, args, io)),
    },
  ],
};

type MigrateCommand = (opened: OpenDatabase) => Promise<void>;

async function withDatabase(args: Arguments, io: Io, use: DatabaseUse, step: MigrateCommand): Promise<number> {
  const opened = await openDatabaseFor(args, io, use);
  try {
    await step(opened);
    return 0;
  } catch (error) {
    if (!(error instanceof MigrationRefused || error instanceof UnservableTables)) throw error;
    io.stderr.write(`bylaw migrate: ${error.message}\n`);
    return 1;
  } finally {
    await opened.close();
  }
}

async function plan({ db, schema }: OpenDatabase, file: string | undefined, io: Io): Promise<void> {
  const migration = await planMigration(db, schema, migrateOptions());
  const printed = printPlan(migration, await brokenRules(db, schema), await ownersNotes(db, schema));
  if (file === undefined) {
    io.stdout.write(printed);
    return;
  }
  writeGivenFile(file, printed, io);
  const count = migration.statements.length;
  io.stdout.write(`wrote ${count} ${count === 1 ? 'statement' : 'statements'} into ${file}\n`);
}

/** The marks of statements that need consent. */
const MARKS: Readonly<Record<RiskyStatement['kind'], string>> = {
  destructive: 'DESTRUCTIVE',
  impossible: 'IMPOSSIBLE',
  rewrites: 'SHUTS THE TABLE',
};

function printPlan(
  { statements, destructive, apart }: Migration,
  broken: readonly BrokenRule[],
  notes: readonly OwnersNote[],
): string {
  const risks = new Map(destructive.map((risky) => [risky.sql, risky]));
  const first = statements.slice(0, statements.length - apart.length);
  const printed = (some: readonly string[]): readonly string[] =>
    some.map((statement) => {
      const risk = risks.get(statement);
      return `${risk === undefined ? '' : `-- ${MARKS[risk.kind]}: ${risk.why}\n`}${statement};\n`;
    });
  const parts = [
    ...broken.map((rule) => `-- RULE: ${brokenRuleText(rule)}\n`),
    ...notes.map(noteLines),
    ...(statements.length === 0 ? ['-- nothing to do: the database matches the schema\n'] : []),
    ...printed(first),
    ...(apart.length === 0 ? [] : ['-- then, one after the other, while the tables are in use:\n']),
    ...printed(apart),
  ];
  return parts.join('');
}

/** No migration runs the statement: the table is not managed. */
const noteLines = ({ text, sql }: OwnersNote): string =>
  `-- OWNER: ${text}\n${sql === undefined ? '' : `--   its owner may run: ${sql};\n`}`;

async function apply({ db, schema }: OpenDatabase, allowDestructive: boolean, io: Io): Promise<void> {
  const { statements } = await applyMigration(db, schema, {
    ...migrateOptions(),
    allowDestructive,
    repeatsCopies: true,
    onStatement: (statement) => io.stdout.write(`${statement};\n`),
    onNote: (note) => io.stderr.write(`bylaw migrate: ${note}\n`),
  });
  io.stdout.write(statements.length === 0 ? 'nothing to do\n' : 'done\n');
}

async function status({ db, schema }: OpenDatabase, args: Arguments, { stdout }: Io): Promise<void> {
  const migrations = await readPastMigrations(db);
  const { statements: pending } = await planMigration(db, schema, migrateOptions());
  if (args.has('json')) {
    stdout.write(`${JSON.stringify({ data: { migrations: migrations.map(migrationJson), pending } }, undefined, 2)}\n`);
    return;
  }
  if (migrations.length > 0) stdout.write('started                     ended                       version   steps\n');
  for (const migration of migrations) {
    const { startedAt, finishedAt, version, statements } = migration;
    const ended = finishedAt === null ? 'not ended' : shortTime(finishedAt);
    stdout.write(`${shortTime(startedAt).padEnd(28)}${ended.padEnd(28)}${version.padEnd(10)}${statements.length}\n`);
    if (args.has('steps'))
      for (const statement of statements) stdout.write(`  ${statement.replaceAll('\n', '\n  ')};\n`);
  }
  stdout.write(
    pending.length === 0
      ? 'the database matches the schema\n'
      : `${pending.length} ${pending.length === 1 ? 'statement is' : 'statements are'} to be run; bylaw migrate plan prints them\n`,
  );
}

const migrationJson = ({ startedAt, finishedAt, version, statements }: PastMigration) => ({
  started_at: startedAt,
  finished_at: finishedAt,
  version,
  statements,
});

/** Rounded down to seconds. */
const shortTime = (cell: string): string => `${cell.slice(0, 10)}T${cell.slice(11, 19)}Z`;
