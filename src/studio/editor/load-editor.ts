/** The compiler, the text field and the reader of schema files load once, at the first use. */
import { loadedOnce } from '../parts/loaded-once.ts';

export type PolicyTools = typeof import('./policy-tools.ts');
export type SchemaTextTools = typeof import('./rules-in-text.ts');

export const usePolicyTools = loadedOnce(() => import('./policy-tools.ts'));
export const useSchemaText = loadedOnce(() => import('./rules-in-text.ts'));
export const useCodeField = loadedOnce(() => import('./code-field.ts'));
