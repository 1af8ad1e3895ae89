/** The commands, in the order of the manual. */
import { unknownName } from '../config.ts';
import { packageVersion } from '../service/version.ts';
import { databaseCommands } from './database-commands.ts';
import { callCommand } from './support/call.ts';
import type { Command, CommandGroup, Io, LoadCommand } from './support/command.ts';
import { overview } from './support/help.ts';

const commands: ReadonlyMap<string, LoadCommand> = new Map<string, LoadCommand>([
  ['init', () => import('./init.ts')],
  ['serve', () => import('./serve.ts')],
  ['dev', () => import('./dev/dev.ts')],
  ['check', () => import('./check.ts')],
  ['test', () => import('./test.ts')],
  ['diff', () => import('./diff.ts')],
  ['prove', () => import('./prove.ts')],
  ['advise', () => import('./advise.ts')],
  ['lsp', () => import('./lsp.ts')],
  ['fmt', () => import('./fmt.ts')],
  ['introspect', () => import('./introspect.ts')],
  ...databaseCommands,
  ['restore', () => import('./backup/restore.ts')],
  ['openapi', () => import('./openapi.ts')],
  ['types', () => import('./types.ts')],
]);

export { reasonOf } from '../thrown.ts';

/** → the exit code. */
export async function runCommand(argv: readonly string[], io: Io): Promise<number> {
  const [name, ...rest] = argv;
  // `bylaw help user add` is `bylaw user add --help`.
  if (name === 'help' && rest.length > 0) return runCommand([...rest, '--help'], io);
  if (name === undefined || name === 'help' || name === '--help' || name === '-h') {
    io.stdout.write(overview(await loadCommands()));
    return name === undefined ? 2 : 0;
  }
  if (name === '--version') {
    io.stdout.write(`bylaw ${packageVersion()}\n`);
    return 0;
  }
  const load = commands.get(name);
  if (load === undefined) {
    const issue = unknownName('command', name, [...commands.keys()]);
    io.stderr.write(`bylaw: ${issue}\n\n${overview(await loadCommands())}`);
    return 2;
  }
  const { command } = await load();
  if (!databaseCommands.has(name)) return callCommand(command, { argv: rest, io });
  const { runDatabaseCommand } = await import('./server/run-in-server.ts');
  return runDatabaseCommand(command, rest, io);
}

export async function loadCommands(): Promise<readonly (Command | CommandGroup)[]> {
  const loaded = await Promise.all([...commands.values()].map((load) => load()));
  return loaded.map(({ command }) => command);
}
