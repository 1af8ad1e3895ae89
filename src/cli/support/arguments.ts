/** The arguments of a command. */
import type { FlagValues } from '../../config.ts';

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
