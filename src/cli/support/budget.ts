/** `--budget MS`: the time of a question to the solver. */
import { ConfigError } from '../../config.ts';
import { DEFAULT_BUDGET } from '../../policy/analyse/solve/solve.ts';
import type { Arguments } from './command.ts';

/** Throws ConfigError. */
export function budgetOf(args: Arguments): number {
  const given = args.get('budget');
  if (given === undefined) return DEFAULT_BUDGET;
  const budget = Number(given);
  if (/^\d+$/.test(given) && budget >= 1 && budget <= 600_000) return budget;
  throw new ConfigError([`--budget: expected milliseconds from 1 to 600000, found \`${given}\``]);
}
