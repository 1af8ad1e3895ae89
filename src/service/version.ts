/** The version of the package. */
import { createRequire } from 'node:module';

/** Resolved by the package's own name, because compiled files are in another folder than sources. */
export function packageVersion(): string {
  const { version } = createRequire(import.meta.url)('bylaw/package.json') as { readonly version: string };
  return version;
}
