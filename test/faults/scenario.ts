/**
 * A fault, what is done to the service, and what must hold. Scenarios run against real processes
 * and a real PostgreSQL.
 */
import type { FaultWorld } from './world.ts';

export interface Scenario {
  readonly name: string;
  /** The expectation, in one line. */
  readonly holds: string;
  /** Why it cannot run on this machine. */
  readonly skip?: () => string | undefined;
  /** Throws what does not hold. */
  run(world: FaultWorld): Promise<void>;
}
