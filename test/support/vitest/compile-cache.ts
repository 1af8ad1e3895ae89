/** Every process of the tests reads the same hundreds of files: only the first strips their types. */
import { join } from 'node:path';

/** Later runs have it too. */
export const compileCache = (): string => join(import.meta.dirname, '../../../node_modules/.bylaw-test-compiled');
