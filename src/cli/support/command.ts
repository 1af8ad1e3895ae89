/** The shape of a command, and its access to the world outside the process. */
import { type FlagValues, SETTINGS, type Setting, type SettingName } from '../../config.ts';
import type { Environment } from '../../schema/load.ts';

export interface Io {
  readonly stdout: { write(text: string): unknown };
  readonly stderr: { write(text: string): unknown };
  readonly stdin: NodeJS.ReadableStream;
  readonly env: Environment;
  readonly cwd: string;
}

/** The arguments of a call: positionals, and the values of each flag. */
export class Arguments {
  readonly positionals: readonly string[];
  readonly #values: ReadonlyMap<string, readonly string[]>;

  constructor(positionals: readonly string[], values: ReadonlyMap<string, readonly string[]>) {
    this.positionals = positionals;
    this.#values = values;
  }

  has(flag: string): boolean {
    return this.#values.has(flag);
  }

  get(flag: string): string | undefined {
    return this.#values.get(flag)?.at(-1);
  }

  all(flag: string): readonly string[] {
    return this.#values.get(flag) ?? [];
  }

  /** The last value of each flag. */
  get flags(): FlagValues {
    return Object.fromEntries([...this.#values].map(([flag, values]) => [flag, values.at(-1)!]));
  }
}

interface Flag {
  /** The name of its value in the usage, such as `ID`; `[ID]` may be left out, and `[=ID]` follows `=` only. Without it, a switch. */
  readonly value?: string;
  readonly repeated?: boolean;
  readonly about: string;
  /** The environment variable for the same setting. */
  readonly env?: string;
  readonly default?: string;
}
export type Flags = Readonly<Record<string, Flag>>;

export interface Command {
  /** The words after `bylaw`: `check`, `user add`. */
  readonly name: string;
  /** A line in the third person: `checks the schema and every policy`. */
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
 * The file of a command is loaded when the command is called: a command without a database does not
 * load the database.
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
  ...(setting.flagMeans === undefined ? { value: setting.value } : {}),
  about: setting.about,
  env: setting.env,
  default: setting.default ?? setting.otherwise,
});

/** The settings that have no flag. */
export const environmentOf = ({ settings }: Command): readonly Setting[] =>
  settings.map((name): Setting => SETTINGS[name]).filter(({ flag }) => flag === undefined);
