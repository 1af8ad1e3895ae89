import { StoreError } from './contract.ts';

/** The message of an error for the user of a command. */
export function messageOf(error: unknown): string {
  if (error instanceof StoreError && error.kind === 'unavailable') {
    const { cause } = error;
    return `the database cannot be reached${cause instanceof Error ? ` (${cause.message})` : ''}`;
  }
  return error instanceof Error ? error.message : String(error);
}
