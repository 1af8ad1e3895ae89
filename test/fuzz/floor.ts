/** A run that compares next to nothing proves nothing: it fails. */

export interface Floor {
  readonly what: string;
  readonly count: number;
  readonly least: number;
}

/** Prints the counts below their floors, and returns how many there are. */
export function printShortfalls(floors: readonly Floor[]): number {
  const short = floors.filter(({ count, least }) => count < least);
  for (const { what, count, least } of short) console.log(`TOO FEW ${what}: ${count}, expected at least ${least}`);
  return short.length;
}
