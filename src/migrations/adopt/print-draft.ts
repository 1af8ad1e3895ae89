/** A draft as the text of a schema file; comments name what it leaves out. */

import { Document, isCollection } from 'yaml';
import { counted } from '../../counted.ts';
import type { Draft, DraftMember, DraftTable, LeftOut } from './draft-table.ts';

const HEAD = `# Drafted by \`bylaw introspect\`. No caller has access yet: an action without a rule is denied. Write rules under
# \`access\`, then run \`bylaw check\`.
`;
const OWNED_ELSEWHERE = `# \`managed: false\`: the tables stay with the program that owns them, and no migration changes them; \`bylaw migrate plan\`
# names what differs. The service keeps its own tables, such as \`users\`, in the current schema: see docs/adopting.md.
`;
const OWNED_COMMENT = `# A collection without \`managed: false\` becomes bylaw's own: \`bylaw migrate plan\` shows the changes. Its table keeps its
# columns, types and rows; missing created_at, updated_at and _version are added, foreign keys get an index, deferred
# constraints become immediate, and ON DELETE NO ACTION becomes RESTRICT.
`;

export function printDraft({ drafted, leftOut }: Draft): string {
  const isOwned = drafted.some(({ declared }) => declared.managed !== false);
  const blocks = [
    [
      HEAD,
      ...(drafted.some(({ declared }) => declared.managed === false) ? [OWNED_ELSEWHERE] : []),
      isOwned ? OWNED_COMMENT : '',
    ].join(''),
    drafted.length === 0 ? 'collections: {}\n' : `collections:\n${drafted.map(collectionLines).join('\n')}`,
    ...(leftOut.length === 0 ? [] : [`# Left out:\n${leftOut.map(leftOutLine).join('')}`]),
  ];
  return blocks.join('\n');
}

/** `12 collections; left out: 2 tables, 1 column` */
export function countDraft({ drafted, leftOut }: Draft): string {
  const kinds = [...leftOut, ...drafted.flatMap((table) => table.leftOut)].map(({ kind }) => kind);
  const counts = (['table', 'view', 'column', 'foreign key'] as const).flatMap((kind) => {
    const number = kinds.filter((each) => each === kind).length;
    return number === 0 ? [] : [counted(number, kind)];
  });
  const secured = drafted.filter(({ existing }) => existing.rowSecurity !== undefined).length;
  const owned = drafted.filter(({ declared }) => declared.managed !== false).length;
  return [
    counted(drafted.length, 'collection'),
    ...(owned > 0 ? [`bylaw owns ${owned} of them`] : []),
    ...(secured > 0 ? [`${counted(secured, 'table')} with row security of the owner`] : []),
    `left out: ${counts.length === 0 ? 'nothing' : counts.join(', ')}`,
  ].join('; ');
}

function collectionLines({ name, declared, notes, obstacles, ...draft }: DraftTable): string {
  const isOwned = declared.managed !== false;
  const wanted = isOwned || obstacles.length === 0 ? [] : obstacles.map((each) => `bylaw cannot own it: ${each}`);
  return [
    ...[...notes, ...wanted].map((note) => comment(2, note)),
    `  ${asYaml(name)}:\n`,
    ...Object.entries(declared).map(([key, value]) => `    ${key}: ${asYaml(value)}\n`),
    ...memberLines('fields', draft.fields),
    ...memberLines('relations', draft.relations),
    ...draft.leftOut.map((each) => comment(4, `left out: ${each.kind} ${each.name}: ${each.reason}`)),
    '    # access: { list: …, read: …, create: …, update: …, delete: … }\n',
    '    access: {}\n',
  ].join('');
}

function memberLines(key: string, members: readonly DraftMember[]): readonly string[] {
  if (members.length === 0) return [];
  return [`    ${key}:\n`, ...members.map(memberLine)];
}

function memberLine({ name, declared, notes, obstacles }: DraftMember): string {
  const reasons = [...notes, ...obstacles.map((each) => `bylaw cannot own it: ${each}`)];
  return `${reasons.map((each) => comment(6, each)).join('')}      ${asYaml(name)}: ${asYaml(declared)}\n`;
}

/** A value on one line. */
export function asYaml(value: unknown): string {
  const document = new Document(value);
  const node = document.contents;
  if (isCollection(node)) node.flow = true;
  return document.toString({ lineWidth: 0, flowCollectionPadding: true }).trimEnd();
}

const leftOutLine = ({ kind, name, reason }: LeftOut): string => comment(0, `${kind} ${name}: ${reason}`, 3);

/** A name in the database may have a line break, which would end the comment. */
function comment(indent: number, text: string, space = 1): string {
  return `${' '.repeat(indent)}#${' '.repeat(space)}${text.replaceAll(/[\p{Cc}\u2028\u2029]+/gu, ' ')}\n`;
}
