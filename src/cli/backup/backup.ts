/** `bylaw backup FILE`: the current state of the embedded database and its stored files, also while they are served. */
import { existsSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { basename, dirname, join, resolve } from 'node:path';
import { type Config, readConfig } from '../../config.ts';
import type { Database } from '../../database/contract.ts';
import { openConfiguredDatabase } from '../../service/configured-database.ts';
import { packageVersion } from '../../service/version.ts';
import { codeOf } from '../../thrown.ts';
import type { Arguments, Command, Io } from '../support/command.ts';
import { hasEmbeddedDatabase, lentWorkspace } from '../support/workspace.ts';
import { BackupWriter } from './archive.ts';

export const command: Command = {
  name: 'backup',
  summary: 'writes the embedded database and its files into one new file, also while a server uses them',
  positionals: ['FILE'],
  settings: ['data', 'databaseUrl', 'files'],
  run,
};

async function run(args: Arguments, io: Io): Promise<number> {
  const [file = ''] = args.positionals;
  const lent = lentWorkspace.getStore();
  const config = lent?.config ?? readConfig(args.flags, io.env);
  const reason = reasonAgainst(config, io);
  if (reason !== undefined) return refuseBackup(reason, io);
  const folder = dirname(resolve(io.cwd, file));
  if (!existsSync(folder)) return refuseBackup(`the folder ${folder} does not exist`, io);
  const db = lent?.db ?? (await openConfiguredDatabase(config, io.cwd));
  // A file that is deleted during the backup may be referenced in the copy of the database.
  const release = lent?.files?.keepBytes();
  try {
    await writeBackup(resolve(io.cwd, file), { db, config, io });
    return 0;
  } catch (error) {
    if (codeOf(error) !== 'EEXIST') throw error;
    return refuseBackup(`${file} exists already; a backup is a new file`, io);
  } finally {
    release?.();
    if (lent === undefined) await db.close();
  }
}

function reasonAgainst(config: Config, io: Io): string | undefined {
  if (config.databaseUrl !== undefined)
    return 'a PostgreSQL server has tools of its own: pg_dump first, and the files after it (docs/operations.md, Backup)';
  return hasEmbeddedDatabase(config, io) ? undefined : `${config.data} has no embedded database`;
}

function refuseBackup(reason: string, { stderr }: Io): number {
  stderr.write(`bylaw backup: ${reason}\n`);
  return 1;
}

interface BackupSource {
  readonly db: Database;
  readonly config: Config;
  readonly io: Io;
}

async function writeBackup(file: string, { db, config, io }: BackupSource): Promise<void> {
  const manifest = { format: 1, version: packageVersion(), created_at: new Date().toISOString() } as const;
  const writer = await BackupWriter.begin(file, manifest);
  try {
    // INVARIANT: the files follow the database, so that the bytes of every copied record exist.
    await db.copyFolder?.((folder) => writer.addFolder(folder, 'database'));
    const stored = join(resolve(io.cwd, config.data), 'files');
    if (config.files === undefined && existsSync(stored))
      await writer.addFolder(stored, 'files', { isLeft: isTemporary, isChanging: true });
    const { bytes, count } = await writer.end();
    io.stdout.write(`wrote ${file}: ${(bytes / 1_000_000).toFixed(1)} MB, ${count} files\n`);
    if (config.files !== undefined) io.stdout.write(`the bucket of BYLAW_FILES is not in it\n`);
  } catch (error) {
    await writer.close().catch(() => undefined);
    await rm(file, { force: true });
    throw error;
  }
}

/** Incomplete uploads and deleted files. */
const isTemporary = (path: string): boolean => ['incoming', 'trash'].includes(basename(path));
