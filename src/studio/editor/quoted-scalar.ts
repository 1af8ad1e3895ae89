/** A string of YAML on one line. */
export const quotedScalar = (text: string): string =>
  `'${text
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '')
    .join(' ')
    .replaceAll("'", "''")}'`;
