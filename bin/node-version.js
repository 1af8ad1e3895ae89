// Plain JavaScript that old versions of Node can read, so that they can say what is missing.

/** Ends the process with a sentence where this Node cannot run the package, or the TypeScript of a checkout. */
export function requireNode(isCheckout) {
  const [major, minor] = process.versions.node.split('.').map(Number);
  const isAtLeast = (wantedMajor, wantedMinor) =>
    major > wantedMajor || (major === wantedMajor && minor >= wantedMinor);
  // Node 22.18 and 23.6 are the first that run TypeScript without a flag.
  const isNewEnough = isCheckout ? (major === 23 ? minor >= 6 : isAtLeast(22, 18)) : isAtLeast(22, 12);
  if (isNewEnough) return;
  const found = `this is Node ${process.versions.node}`;
  console.error(
    isCheckout
      ? `bylaw: a checkout runs on Node 24, which \`npm ci\` installs beside it, but ${found}: run \`npm ci\` without --ignore-scripts, then start it with npm`
      : `bylaw: Node 22.12 or newer is needed, but ${found}: install a newer one from https://nodejs.org`,
  );
  process.exit(1);
}
