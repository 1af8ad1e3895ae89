/** The version of the text of a schema file: its hash. */
import { hash } from 'node:crypto';

export const versionOfText = (text: string): string => hash('sha256', text, 'hex').slice(0, 32);
