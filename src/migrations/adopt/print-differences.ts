/** The differences between a schema file and a database, a line each. */
import type { Difference } from './difference.ts';
import { asYaml } from './print-draft.ts';

export function printDifferences(differences: readonly Difference[]): string {
  if (differences.length === 0) return 'no difference\n';
  const count = (wanted: Difference['kind']): number => differences.filter(({ kind }) => kind === wanted).length;
  const counts = `the file lacks ${count('file_lacks')}, the database lacks ${count('database_lacks')}, ${count('differs')} differ`;
  return `${differences.map(lineOf).join('')}\n${counts}\n`;
}

function lineOf({ kind, table, column, columns, name, key, file, database }: Difference): string {
  const several = columns && `the foreign key of \`${columns.join('`, `')}\` of ${table}`;
  const what = several ?? (column === undefined ? `the table ${table}` : `the column \`${column}\` of ${table}`);
  switch (kind) {
    case 'file_lacks': {
      const declaration = database === undefined ? '' : `: ${asYaml(database)}`;
      return `${name}: the file lacks ${what}${declaration}\n`;
    }
    case 'database_lacks':
      return `${name}: the database lacks ${what}\n`;
    case 'differs':
      return `${name}: \`${key}\` is ${printed(file)} in the file, and ${printed(database)} in the database\n`;
  }
}

const printed = (value: unknown): string => (value === undefined ? 'not given' : asYaml(value));
