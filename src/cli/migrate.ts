/** `bylaw migrate plan | apply`: from the state of the database to the schema. */
import { applyMigration, type Migration, MigrationRefused, planMigration } from '../store/migrations/migration.ts';
import type { Arguments } from './arguments.ts';
import { type CommandGroup, DATABASE_SETTINGS, type Io } from './command.ts';
import { systemTables } from './system-tables.ts';
import { type OpenDatabase, openDatabaseFor } from './workspace.ts';

export const command: CommandGroup = {
  name: 'migrate',
  summary: 'shows or runs the SQL that brings the database to the schema',
  commands: [
    {
      name: 'migrate plan',
      summary: 'prints the SQL, and marks what would lose data',
      settings: DATABASE_SETTINGS,
      run: (args, io) => withDatabase(args, io, plan),
    },
    {
      name: 'migrate apply',
      summary: 'runs the SQL in one transaction',
      settings: DATABASE_SETTINGS,
      flags: { 'allow-destructive': { about: 'also runs the statements that lose data' } },
      run: (args, io) => withDatabase(args, io, (opened) => apply(opened, args.has('allow-destructive'), io)),
    },
  ],
};

type MigrateCommand = (opened: OpenDatabase, io: Io) => Promise<void>;

async function withDatabase(args: Arguments, io: Io, step: MigrateCommand): Promise<number> {
  const opened = await openDatabaseFor(args, io);
  try {
    await step(opened, io);
    return 0;
  } catch (error) {
    if (!(error instanceof MigrationRefused)) throw error;
    io.stderr.write(`bylaw migrate: ${error.message}\n`);
    return 1;
  } finally {
    await opened.close();
  }
}

async function plan({ db, schema }: OpenDatabase, { stdout }: Io): Promise<void> {
  const { statements, destructive }: Migration = await planMigration(db, schema, { systemTables });
  if (statements.length === 0) stdout.write('-- nothing to do: the database matches the schema\n');
  const losses = new Map(destructive.map(({ sql, why }) => [sql, why]));
  for (const statement of statements) {
    const why = losses.get(statement);
    stdout.write(`${why === undefined ? '' : `-- DESTRUCTIVE: ${why}\n`}${statement};\n`);
  }
}

async function apply({ db, schema }: OpenDatabase, allowDestructive: boolean, { stdout }: Io): Promise<void> {
  const { statements } = await applyMigration(db, schema, { allowDestructive, systemTables });
  stdout.write(
    statements.length === 0 ? 'nothing to do\n' : `${statements.map((sql) => `${sql};`).join('\n')}\ndone\n`,
  );
}
