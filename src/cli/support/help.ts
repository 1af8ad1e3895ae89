/** The output of `--help`, from the declarations of the commands and of the settings. */
import { type Command, type CommandGroup, environmentOf, flagsOf } from './command.ts';

type HelpRow = readonly [left: string, right: string];

/** `bylaw --help`. */
export function overview(commands: readonly (Command | CommandGroup)[]): string {
  return helpPage(
    'bylaw: collections of records over HTTP, where policies decide every access',
    'bylaw COMMAND [flags]',
    ['commands', commands.map(({ name, summary }): HelpRow => [name, summary])],
    [
      'flags',
      [
        ['--help', 'explains a command: `bylaw COMMAND --help`'],
        ['--version', 'prints the version'],
      ],
    ],
  );
}

/** `bylaw user --help`. */
export function groupHelp({ name, summary, commands }: CommandGroup): string {
  return helpPage(
    `bylaw ${name}: ${summary}`,
    `bylaw ${name} COMMAND [flags]`,
    ['commands', commands.map((command): HelpRow => [usageOf(command), command.summary])],
    ['flags', [['--help', `explains a command: \`bylaw ${commands[0]!.name} --help\``]]],
  );
}

/** `bylaw user add --help`. */
export function commandHelp(command: Command): string {
  const flags = Object.entries(flagsOf(command)).map(([name, flag]): HelpRow => {
    const notes = [flag.repeated === true ? 'may be repeated' : '', flag.env ?? '', defaultNote(flag.default)];
    return [`--${name}${flag.value === undefined ? '' : ` ${flag.value}`}`, withNotes(flag.about, notes)];
  });
  const environment = environmentOf(command).map((setting): HelpRow => {
    return [setting.env, withNotes(setting.about, [defaultNote(setting.default ?? setting.otherwise)])];
  });
  return helpPage(
    `bylaw ${command.name}: ${command.summary}`,
    `bylaw ${usageOf(command)} [flags]`,
    ['flags', flags],
    ['environment only', environment],
  );
}

const usageOf = ({ name, positionals = [] }: Command): string => [name, ...positionals].join(' ');

const defaultNote = (value: string | undefined): string => (value === undefined ? '' : `default: ${value}`);

function withNotes(about: string, notes: readonly string[]): string {
  const given = notes.filter((note) => note !== '');
  return given.length === 0 ? about : `${about} (${given.join('; ')})`;
}

function helpPage(title: string, usage: string, ...tables: readonly (readonly [string, readonly HelpRow[]])[]): string {
  const filled = tables.filter(([, rows]) => rows.length > 0);
  const width = Math.max(...filled.flatMap(([, rows]) => rows.map(([left]) => left.length)));
  const sections = filled.map(
    ([head, rows]) => `${head}:\n${rows.map(([left, right]) => `  ${left.padEnd(width)}  ${right}\n`).join('')}`,
  );
  return [`${title}\n`, `usage: ${usage}\n`, ...sections].join('\n');
}
