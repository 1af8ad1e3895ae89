/** The shape of a command, and its access to the world outside the process. */
import { type Environment, SETTINGS, type Setting, type SettingName } from '../../config.ts';
import type { Arguments } from './arguments.ts';

export interface Io {
  readonly stdout: { write(text: string): unknown };
  readonly stderr: { write(text: string): unknown };
  readonly stdin: NodeJS.ReadableStream;
  readonly env: Environment;
  readonly cwd: string;
}

interface Flag {
  /** The name of its value in the usage; a flag without one is a switch. */
  readonly value?: string;
  readonly repeated?: boolean;
  readonly about: string;
  /** The environment name that means the same. */
  readonly env?: string;
  readonly default?: string;
}
export type Flags = Readonly<Record<string, Flag>>;

export interface Command {
  /** As it is typed after `bylaw`: `check`, `user add`. */
  readonly name: string;
  /** One line, in the third person: `checks the schema and every policy`. */
  readonly summary: string;
  /** Names of arguments: `EMAIL` is required, `[DIR]` is not, `[NAME…]` may be repeated. */
  readonly positionals?: readonly string[];
  readonly settings: readonly SettingName[];
  readonly flags?: Flags;
  /** → the exit code: 0, 1 for a negative result, 2 for a wrong call. May throw ConfigError. */
  run(args: Arguments, io: Io): Promise<number>;
}
/** `bylaw user …`: each of its commands is named `user add`, `user roles`, …. */
export interface CommandGroup {
  readonly name: string;
  readonly summary: string;
  readonly commands: readonly Command[];
}

/**
 * The file of a command is loaded when the command is called: one that needs no database does not
 * wait for it.
 */
export type LoadCommand = () => Promise<{ readonly command: Command | CommandGroup }>;

/** The settings of every command that opens the database. */
export const DATABASE_SETTINGS: readonly SettingName[] = ['schema', 'data', 'databaseUrl'];

/** The settings that have a flag come first. */
export function flagsOf({ settings, flags }: Command): Flags {
  const shared = settings
    .map((name): Setting => SETTINGS[name])
    .flatMap((setting) => (setting.flag === undefined ? [] : [[setting.flag, flagOfSetting(setting)] as const]));
  return { ...Object.fromEntries(shared), ...flags };
}

const flagOfSetting = (setting: Setting): Flag => ({
  value: setting.value,
  about: setting.about,
  env: setting.env,
  default: setting.default ?? setting.otherwise,
});

/** The settings that only the environment has. */
export const environmentOf = ({ settings }: Command): readonly Setting[] =>
  settings.map((name): Setting => SETTINGS[name]).filter(({ flag }) => flag === undefined);
