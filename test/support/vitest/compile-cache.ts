/** Every process of the tests reads the same hundreds of files: only the first strips their types. */
import { tmpdir } from 'node:os';
import { join } from 'node:path';

export const compileCache = (): string => join(tmpdir(), 'bylaw-test-compiled');
