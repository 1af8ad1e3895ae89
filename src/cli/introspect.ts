/** `bylaw introspect URL`: prints a schema file for an existing PostgreSQL database, which it only reads. */
import { ConfigError, SETTINGS } from '../config.ts';
import type { Queryable } from '../database/contract.ts';
import { openDatabase } from '../database/open-database.ts';
import { draftSchema } from '../migrations/adopt/adopt.ts';
import { compareFile } from '../migrations/adopt/compare-file.ts';
import { printDifferences } from '../migrations/adopt/print-differences.ts';
import { countDraft, printDraft } from '../migrations/adopt/print-draft.ts';
import { readExistingTables } from '../migrations/adopt/read-existing-tables.ts';
import { atLocalServer } from '../service/local-server.ts';
import type { Arguments, Command, Io } from './support/command.ts';
import { readSchemaFile } from './support/schema-file.ts';

export const command: Command = {
  name: 'introspect',
  summary: 'drafts a schema file from the tables and views of an existing PostgreSQL, and prints it',
  positionals: ['URL', '[SCHEMA…]'],
  settings: [],
  flags: {
    diff: { value: 'FILE', about: 'compares the database with this schema file instead; exits with 1 on a difference' },
    json: {
      about: 'with --diff: prints the differences as JSON: [{ kind, table, column, name, key, file, database }]',
    },
    managed: { about: 'lets bylaw own the tables that it can own as they are; default: it owns none' },
  },
  run,
};

async function run(args: Arguments, io: Io): Promise<number> {
  const [given = '', ...schemas] = args.positionals;
  const url = SETTINGS.databaseUrl.read.safeParse(given);
  if (!url.success) throw new ConfigError([`URL: ${url.error.issues[0]!.message}`]);
  const file = args.get('diff');
  const db = await openDatabase({ url: atLocalServer(url.data), poolSize: 1, pipelines: 1 });
  try {
    if (file !== undefined) return await diff(db, { file, schemas, isJson: args.has('json') }, io);
    const draft = draftSchema(await readExistingTables(db, schemas), { managed: args.has('managed') });
    io.stdout.write(printDraft(draft));
    io.stderr.write(`${countDraft(draft)}\n`);
    return 0;
  } finally {
    await db.close();
  }
}

interface FileComparison {
  readonly file: string;
  readonly schemas: readonly string[];
  readonly isJson: boolean;
}

async function diff(db: Queryable, { file, schemas, isJson }: FileComparison, io: Io): Promise<number> {
  const { schema, report } = readSchemaFile(file, io);
  if (schema === undefined) {
    io.stderr.write(report);
    return 1;
  }
  const differences = compareFile(schema, await readExistingTables(db), schemas);
  io.stdout.write(isJson ? `${JSON.stringify(differences, null, 2)}\n` : printDifferences(differences));
  return differences.length === 0 ? 0 : 1;
}
