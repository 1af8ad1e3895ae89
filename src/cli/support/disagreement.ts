/** The report of a world that two ways decide differently. */
import type { ReplayDisagreement } from '../../workbench/decided-by-sql.ts';
import { fullWorldLines } from '../../workbench/world-lines.ts';
import type { Io } from './command.ts';

/** → the exit code. */
export function reportDisagreement(name: string, { message, world, catalog }: ReplayDisagreement, io: Io): number {
  io.stderr.write(`bylaw ${name}: ${message}: a defect of bylaw; please report it with the schema and this:\n`);
  io.stderr.write(`${fullWorldLines(world, catalog).join('\n')}\n`);
  return 3;
}
