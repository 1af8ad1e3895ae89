/** The types of what a session gives to its caller, by the name. Pages import it, too. */
import type { ScalarType } from '../policy/scalar-types.ts';
import { SESSION_FACTS } from '../policy/types.ts';

export const SESSION_TYPES: ReadonlyMap<string, ScalarType> = new Map(SESSION_FACTS);
