/** Imported first: the reader of schemas must not try whether the page admits generated code, and makes names of SQL that no page uses. */
import { config } from 'zod';

config({ jitless: true });
Object.assign(globalThis, { Buffer: { byteLength: () => 0 } });
