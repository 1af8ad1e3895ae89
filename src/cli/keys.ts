/** `bylaw keys rotate`: a new signing key. Tokens of the old one stay valid until they expire; servers need no restart. */
import { ConfigError, readArguments } from '../config.ts';
import { type Io, reportingConfigErrors } from './command.ts';
import { openWorkspace, WORKSPACE_FLAGS } from './open.ts';

export const command = reportingConfigErrors({
  name: 'keys',
  summary: 'keys rotate: a new signing key; old tokens stay valid until they expire',
  run,
});

async function run(argv: readonly string[], io: Io): Promise<number> {
  const flags = readArguments(argv, WORKSPACE_FLAGS);
  if (flags.positionals.join(' ') !== 'rotate') throw new ConfigError(['expected `keys rotate`']);
  const workspace = await openWorkspace(io, flags);
  try {
    io.stdout.write(`the new key is ${await workspace.auth.admin.rotateKeys()}; it signs from now on\n`);
    return 0;
  } finally {
    await workspace.close();
  }
}
