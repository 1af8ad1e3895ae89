/** A replay reads the log in pages of 500 entries. In a copy of the program they have three, so that small worlds have several. */
import { ProgramCopy } from '../faults/program-copy.ts';

const CHANGE = {
  file: 'src/changes/change-log.ts',
  find: /MOST_OF_PAGE = 500;/,
  put: 'MOST_OF_PAGE = 3;',
};

export function makePagesSmall(copy: ProgramCopy): void {
  if (!copy.change(CHANGE)) throw new Error(`${CHANGE.file} no longer says how long a page is`);
}

export function copyWithSmallPages(): ProgramCopy {
  const copy = new ProgramCopy();
  makePagesSmall(copy);
  return copy;
}
