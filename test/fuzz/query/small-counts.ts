/** Estimates begin beyond 10,000 records. In a copy of the program they begin at a dozen, so that small worlds reach them. */
import { ProgramCopy } from '../faults/program-copy.ts';

/** The most that is counted for an estimate. */
export const MOST_COUNTED = 12;
const CHANGE = {
  file: 'src/records/page/count.ts',
  find: /MOST_COUNTED = 10_000;/,
  put: `MOST_COUNTED = ${MOST_COUNTED};`,
};

export function makeCountsSmall(copy: ProgramCopy): void {
  if (!copy.change(CHANGE)) throw new Error(`${CHANGE.file} no longer says where estimates begin`);
}

export function copyWithSmallCounts(): ProgramCopy {
  const copy = new ProgramCopy();
  makeCountsSmall(copy);
  return copy;
}
