/** The tables of docs/operations.md: commands with their flags, and settings. */
import { loadCommands } from '../../src/cli/index.ts';
import { type Command, environmentOf, flagsOf } from '../../src/cli/support/command.ts';
import { SETTINGS, type Setting } from '../../src/config.ts';
import { markdownTable } from './markdown.ts';

export async function commandsTable(): Promise<string> {
  const commands = (await loadCommands()).flatMap((loaded) => ('commands' in loaded ? loaded.commands : [loaded]));
  return markdownTable(['command', 'does', 'flags'], commands.map(commandRow));
}

function commandRow(command: Command): readonly string[] {
  const { name, positionals = [], summary, flags = {} } = command;
  const settings = flagsOf(command);
  const own = Object.entries(flags).map(([flag, { value, repeated }]) => {
    return `\`--${flag}${value === undefined ? '' : ` ${value}`}\`${repeated === true ? '…' : ''}`;
  });
  const shared = Object.keys(settings).filter((flag) => !Object.hasOwn(flags, flag));
  const isServe = command.settings.length === Object.keys(SETTINGS).length;
  const environment = environmentOf(command).map(({ env }) => `\`${env}\``);
  const all = isServe ? ['all settings below'] : [...shared.map((flag) => `\`--${flag}\``), ...environment, ...own];
  return [`\`${['bylaw', name, ...positionals].join(' ')}\``, summary, all.join(' ')];
}

export const settingsTable = (): string =>
  markdownTable(['environment', 'flag', 'default', 'meaning'], Object.values(SETTINGS).map(settingRow));

function settingRow({
  env,
  flag,
  flagMeans,
  value,
  about,
  default: standard,
  otherwise = '',
}: Setting): readonly string[] {
  const flagText = flag === undefined ? '' : `\`--${flag}${flagMeans === undefined ? ` ${value}` : ''}\``;
  return [`\`${env}\``, flagText, standard === undefined ? otherwise : `\`${standard}\``, about];
}
