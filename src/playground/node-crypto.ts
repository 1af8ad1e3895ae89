/** In the place of `node:crypto`: digests are parts of names in SQL, which a page does not use. */
const hash = { update: () => hash, digest: () => '0'.repeat(64) };

export const createHash = (): typeof hash => hash;
