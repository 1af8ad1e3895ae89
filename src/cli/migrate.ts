/** `bylaw migrate plan | apply`: from the database's state to the schema. */
import { ConfigError, readArguments } from '../config.ts';
import { applyMigration, type Migration, MigrationRefused, planMigration } from '../store/migrations/migrate.ts';
import type { Command, Io } from './command.ts';
import { openDatabaseFor, WORKSPACE_FLAGS } from './open.ts';
import { systemTables } from './system-tables.ts';

const FLAGS = { ...WORKSPACE_FLAGS, 'allow-destructive': {} } as const;

export const command: Command = {
  name: 'migrate',
  summary: 'plan | apply [--allow-destructive]: show or run the SQL from the state of the database to the schema',
  async run(argv, io) {
    const flags = readArguments(argv, FLAGS);
    const [step, ...more] = flags.positionals;
    if ((step !== 'plan' && step !== 'apply') || more.length > 0)
      throw new ConfigError(['expected `migrate plan` or `migrate apply`']);
    const { db, schema, close } = await openDatabaseFor(io, flags);
    try {
      if (step === 'plan') return tellPlan(await planMigration(db, schema, { systemTables }), io);
      const allowDestructive = flags.has('allow-destructive');
      return tellDone(await applyMigration(db, schema, { allowDestructive, systemTables }), io);
    } catch (error) {
      if (!(error instanceof MigrationRefused)) throw error;
      io.stderr.write(`bylaw migrate: ${error.message}\n`);
      return 1;
    } finally {
      await close();
    }
  },
};

function tellPlan({ statements, destructive }: Migration, { stdout }: Io): number {
  if (statements.length === 0) stdout.write('-- nothing to do: the database is as the schema wants it\n');
  const losses = new Map(destructive.map(({ sql, why }) => [sql, why]));
  for (const statement of statements) {
    const why = losses.get(statement);
    stdout.write(`${why === undefined ? '' : `-- DESTRUCTIVE: ${why}\n`}${statement};\n`);
  }
  return 0;
}

function tellDone({ statements }: Migration, { stdout }: Io): number {
  stdout.write(
    statements.length === 0
      ? 'nothing to do\n'
      : `${statements.map((statement) => `${statement};`).join('\n')}\ndone\n`,
  );
  return 0;
}
