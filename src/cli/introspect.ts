/** `bylaw introspect URL`: prints a schema file for an existing PostgreSQL database, which it only reads. */
import { ConfigError, SETTINGS } from '../config.ts';
import { openDatabase } from '../database/open-database.ts';
import { draftSchema } from '../migrations/adopt/adopt.ts';
import { readExistingTables } from '../migrations/adopt/existing-tables.ts';
import { printDraft } from '../migrations/adopt/print-draft.ts';
import { atLocalServer } from '../service/local-server.ts';
import type { Arguments, Command, Io } from './support/command.ts';

export const command: Command = {
  name: 'introspect',
  summary: 'drafts a schema file from the tables of an existing PostgreSQL, and prints it',
  positionals: ['URL'],
  settings: [],
  run,
};

async function run({ positionals: [given = ''] }: Arguments, io: Io): Promise<number> {
  const url = SETTINGS.databaseUrl.read.safeParse(given);
  if (!url.success) throw new ConfigError([`URL: ${url.error.issues[0]!.message}`]);
  const db = await openDatabase({ url: atLocalServer(url.data), poolSize: 1, pipelines: 1 });
  try {
    const draft = draftSchema(await readExistingTables(db));
    io.stdout.write(printDraft(draft));
    const { adopted, postponed, skipped } = draft;
    const counts = `${adopted.length} tables adopted, ${postponed.length} need changes first`;
    io.stderr.write(`${counts}, ${skipped.length} cannot be collections\n`);
    return 0;
  } finally {
    await db.close();
  }
}
