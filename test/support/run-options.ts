/** The options of long runs: benchmarks, fuzzes and faults. */
import { type ParseArgsConfig, parseArgs } from 'node:util';

/**
 * Reads the options. `--help` prints them and ends the process; an unknown one ends it with 2.
 * @param command the words of the shell before the options
 * @param more further lines of the help
 */
export function readOptions<T extends ParseArgsConfig>(
  command: string,
  config: T,
  more: readonly string[] = [],
): ReturnType<typeof parseArgs<T>> {
  const help = [`usage: ${command}${usageOf(config)}`, ...more].join('\n');
  if ((config.args ?? process.argv.slice(2)).includes('--help')) {
    console.log(help);
    process.exit(0);
  }
  try {
    return parseArgs(config);
  } catch (error) {
    console.error(`${(error as Error).message.replace(/\. To specify a positional.*/s, '')}\n${help}`);
    process.exit(2);
  }
}

const usageOf = ({ options = {}, allowPositionals = false }: ParseArgsConfig): string =>
  [
    ...(allowPositionals ? ['[NAME…]'] : []),
    ...Object.entries(options).map(([name, { type, default: usual }]) =>
      type === 'boolean' ? `[--${name}]` : `[--${name} ${usual || name.toUpperCase()}]`,
    ),
  ]
    .map((each) => ` ${each}`)
    .join('');
