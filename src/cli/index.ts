/** The commands, in the order of the manual, and how one is called. */
import { nearest } from '../../grammar/suggest.ts';
import { StoreError } from '../store/database/contract.ts';
import { type Io, type LoadCommand, reportingConfigErrors } from './command.ts';
import { databaseCommands } from './database-commands.ts';

const commands: ReadonlyMap<string, LoadCommand> = new Map<string, LoadCommand>([
  ['serve', () => import('./serve.ts')],
  ['check', () => import('./check.ts')],
  ['fmt', () => import('./fmt.ts')],
  ...databaseCommands,
  ['openapi', () => import('./openapi.ts')],
  ['types', () => import('./types.ts')],
]);

/** → the exit code. */
export async function runCommand(argv: readonly string[], io: Io): Promise<number> {
  const [name, ...rest] = argv;
  if (name === undefined || name === 'help' || name === '--help' || name === '-h') {
    io.stdout.write(await usage());
    return name === undefined ? 2 : 0;
  }
  const load = commands.get(name);
  if (load === undefined) {
    const near = nearest(name, [...commands.keys()]);
    const hint = near === undefined ? '' : `; did you mean \`${near}\`?`;
    io.stderr.write(`bylaw: unknown command \`${name}\`${hint}\n\n${await usage()}`);
    return 2;
  }
  const { command } = await load();
  if (rest.includes('--help')) {
    io.stdout.write(`bylaw ${command.name}: ${command.summary}\n`);
    return 0;
  }
  if (!databaseCommands.has(name)) return reportingConfigErrors(command).run(rest, io);
  const { runHereOrThere } = await import('./run-command.ts');
  return runHereOrThere(command, rest, io);
}

/** For whoever typed the command. */
export function messageOf(error: unknown): string {
  if (error instanceof StoreError && error.kind === 'unavailable') {
    const { cause } = error;
    return `the database cannot be reached${cause instanceof Error ? ` (${cause.message})` : ''}`;
  }
  return error instanceof Error ? error.message : String(error);
}

async function usage(): Promise<string> {
  const loaded = await Promise.all([...commands.values()].map((load) => load()));
  const width = Math.max(...loaded.map(({ command }) => command.name.length));
  const lines = loaded.map(({ command }) => `  ${command.name.padEnd(width)}  ${command.summary}`);
  return `bylaw: collections of records over HTTP, where policies decide every access\n\n${lines.join('\n')}\n`;
}
