/** `bylaw keys rotate`: servers use the new key without a restart. */
import { rotateKeys } from '../../auth/keys/key-rotation.ts';
import { HEAD_START } from '../../auth/keys/signing-keys.ts';
import { type Arguments, type CommandGroup, DATABASE_SETTINGS, type Io } from '../support/command.ts';
import { openMigratedDatabase } from '../support/workspace.ts';

export const command: CommandGroup = {
  name: 'keys',
  summary: 'rotates the signing keys of access tokens',
  commands: [
    {
      name: 'keys rotate',
      summary: 'makes a new signing key; tokens of the old one stay valid until they expire',
      settings: DATABASE_SETTINGS,
      flags: { now: { about: 'deletes the old keys: every access token ends now, and clients refresh' } },
      run: rotate,
    },
  ],
};

async function rotate(args: Arguments, io: Io): Promise<number> {
  const now = args.has('now');
  // A workspace would need the present keys, which may be lost.
  const { db, schema, config, close } = await openMigratedDatabase(args, io, { writes: true });
  try {
    const kid = await rotateKeys(db, { keySecret: config.keySecret, tokenLifetime: schema.sessions.access, now });
    const effect = now
      ? 'the old keys are deleted, and their tokens are invalid'
      : `it signs in ${HEAD_START} seconds, when every server has it`;
    io.stdout.write(`the new key is ${kid}; ${effect}\n`);
    return 0;
  } finally {
    await close();
  }
}
