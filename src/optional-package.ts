/** Optional dependencies: loaded when they are first used, and possibly not installed. A leaf. */

/** For the operator: which packages are missing, why they are needed, and what to do. */
export class MissingPackage extends Error {
  constructor(names: readonly string[], reason: string, cause?: unknown) {
    const packages = names.length === 1 ? `package ${names[0]} is` : `packages ${names.join(', ')} are`;
    super(`${reason}, but the optional ${packages} not installed: run \`npm install ${names.join(' ')}\``, { cause });
    this.name = 'MissingPackage';
  }
}

export interface Optional<T> {
  /** The packages that `load` needs. */
  readonly packages: readonly string[];
  /** A clause that says why: `files are stored in S3 (BYLAW_FILES)`. */
  readonly reason: string;
  readonly load: () => Promise<T>;
}

/** Throws MissingPackage. */
export async function loadOptional<T>({ packages, reason, load }: Optional<T>): Promise<T> {
  try {
    return await load();
  } catch (error) {
    if (!packages.some((name) => isMissing(name, error))) throw error;
    throw new MissingPackage(packages, reason, error);
  }
}

function isMissing(name: string, error: unknown): boolean {
  const { code, message = '' } = error as NodeJS.ErrnoException;
  if (code === 'ERR_MODULE_NOT_FOUND') return message.includes(`package '${name}'`);
  // The package is there, its binary for this machine is not.
  return message.includes(`Could not load the "${name}" module`);
}
