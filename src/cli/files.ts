/** `bylaw files adopt`: takes ownership of the stored files for this database, after a restore. */
import { readIdentity } from '../files/file-tables.ts';
import { placeOfDatabase } from '../files/storage/database-place.ts';
import { openStorage } from '../files/storage/open-storage.ts';
import { Ownership } from '../files/storage/ownership.ts';
import { type Arguments, type CommandGroup, DATABASE_SETTINGS, type Io } from './support/command.ts';
import { openMigratedDatabase } from './support/workspace.ts';

export const command: CommandGroup = {
  name: 'files',
  summary: 'says which database the stored files belong to',
  commands: [
    {
      name: 'files adopt',
      summary:
        'takes ownership of the stored files from another copy of this database, which then deletes none of them',
      settings: [...DATABASE_SETTINGS, 'files'],
      flags: {},
      run: adopt,
    },
  ],
};

async function adopt(args: Arguments, io: Io): Promise<number> {
  const { db, config, close } = await openMigratedDatabase(args, io, { writes: true });
  try {
    const { storeId } = await readIdentity(db);
    await new Ownership(db, await openStorage(config, storeId), await placeOfDatabase(db, config)).adopt();
    io.stdout.write('the stored files belong to this database now; other copies of it delete none of them\n');
    return 0;
  } finally {
    await close();
  }
}
