/** Remarks of a draft on a table: what PostgreSQL holds besides the file, and the row security of its owner. */
import { allowedBy, oneLine } from './draft-field.ts';
import { draftKey } from './draft-key.ts';
import type { ExistingTable, RowPolicy } from './existing-tables.ts';

export function tableNotes(table: ExistingTable): readonly string[] {
  const { note } = draftKey(table) ?? {};
  return [
    ...(table.table === 'users'
      ? ['users sign in by the lower-case form of `email`; passwords are not taken over']
      : []),
    ...(note === undefined ? [] : [note]),
    ...writeNotes(table),
    ...constraintNotes(table),
    ...rowSecurityNotes(table),
  ];
}

function writeNotes({ kind, writes }: ExistingTable): readonly string[] {
  if (kind === 'table' || writes.length === 3) return [];
  return [writes.length === 0 ? 'PostgreSQL can only read it' : `PostgreSQL takes ${writes.join(' and ')} of it only`];
}

function constraintNotes({ constraints, indexes }: ExistingTable): readonly string[] {
  const also = (what: string): string => `PostgreSQL also holds ${what}`;
  return [
    ...constraints.flatMap(({ kind, columns, definition }) => {
      if (kind === 'c' && allowedBy(definition, columns) === undefined)
        return [`${also(oneLine(definition))}; a write that breaks it is a 422 \`check_violation\``];
      const isNamed = kind === 'x' || (kind === 'u' && columns.length > 1);
      return isNamed ? [`${also(oneLine(definition))}; a write that breaks it is a 409`] : [];
    }),
    ...indexes.flatMap(({ unique, columns }) =>
      unique && columns.length > 1 ? [also(`unique (${columns.join(', ')})`)] : [],
    ),
  ];
}

function rowSecurityNotes({ rowSecurity }: ExistingTable): readonly string[] {
  if (rowSecurity === undefined) return [];
  const { active, policies } = rowSecurity;
  const scope = active
    ? 'the user of this URL sees and writes only what they allow, before the rules of this file are asked'
    : 'they do not hold for the user of this URL, so write rules that say as much';
  const named = policies.length === 1 ? 'one policy' : `${policies.length} policies`;
  const count = policies.length === 0 ? 'without policies, which allow nothing' : `with ${named}`;
  return [`its owner has row security ${count}; ${scope}`, ...policies.map(policyNote)];
}

const policyNote = ({ name, command, using, check }: RowPolicy): string =>
  [
    `  ${name} for ${command}`,
    ...(using === undefined ? [] : [`using ${oneLine(using)}`]),
    ...(check === undefined ? [] : [`with check ${oneLine(check)}`]),
  ].join(' ');
