/** Imported first: the reader of schemas must not try whether the page admits generated code. */
import { config } from 'zod';

config({ jitless: true });
