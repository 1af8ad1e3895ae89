/** A draft as the text of a schema file; tables that are not adopted are in comments. */
import { BUILT_IN } from '../../schema/model/model.ts';
import { type Draft, type DraftMember, type DraftTable, type Skipped, yamlName } from './draft-table.ts';

const HEAD = `# Drafted by \`bylaw introspect\`. No caller has access yet: an action without a rule is denied. Write rules under
# \`access\`, then run \`bylaw check\`, and \`bylaw migrate plan\` for the changes. Adopted tables keep their columns, types and
# rows; missing created_at, updated_at and _version are added, foreign keys get an index, and deferred constraints
# become immediate.
`;

export function printDraft({ adopted, postponed, skipped }: Draft): string {
  const blocks = [
    HEAD,
    ...[...postponed, ...skipped].filter(({ name }) => BUILT_IN.includes(name)).map(({ name }) => clashOf(name)),
    adopted.length === 0 ? 'collections: {}\n' : `collections:\n${adopted.map(collectionLines).join('\n')}`,
    ...(postponed.length === 0 ? [] : [POSTPONED, ...postponed.map((table) => commented(postponedOf(table)))]),
    ...(skipped.length === 0 ? [] : [`# Not tables for a collection:\n${skipped.map(skippedOf).join('')}`]),
  ];
  return blocks.join('\n');
}

/** Every schema has such a table, even if the draft does not name it. */
const clashOf = (name: string): string =>
  `# NOT USABLE YET: the service has a table \`${name}\` of its own, and the one of this database does not fit: change or rename it first.\n`;

const POSTPONED = `# These have a uuid key, but not all of each fits as it is. Make the changes that are named, and introspect again.
`;

const collectionLines = ({ name, table, fields, relations, notes }: DraftTable): string =>
  [
    ...notes.map((note) => `  # ${safe(note)}\n`),
    `  ${yamlName(name)}:\n`,
    ...(table === name ? [] : [`    table: ${JSON.stringify(table)}\n`]),
    ...draftMemberLines('fields', fields),
    ...draftMemberLines('relations', relations),
    '    # access: { list: …, read: …, create: …, update: …, delete: … }\n',
    '    access: {}\n',
  ].join('');

const postponedOf = (table: DraftTable): string =>
  `${table.obstacles.map((obstacle) => `  # ${safe(obstacle)}\n`).join('')}${collectionLines(table)}`;

function draftMemberLines(key: string, members: readonly DraftMember[]): readonly string[] {
  if (members.length === 0) return [];
  return [`    ${key}:\n`, ...members.map(memberLine)];
}

function memberLine({ name, yaml, note, obstacle }: DraftMember): string {
  const reason = obstacle ?? note;
  const line = `      ${/^[A-Za-z]\w*$/.test(name) ? yamlName(name) : JSON.stringify(name)}: ${yaml}\n`;
  return reason === undefined ? line : `      # ${safe(reason)}\n${line}`;
}

const commented = (text: string): string => text.replaceAll(/^(?=.)/gm, '#');
const skippedOf = ({ name, reason }: Skipped): string => `#   ${safe(name)}: ${safe(reason)}\n`;

/** A name in the database may have a line break, which would end the comment. */
const safe = (text: string): string => text.replaceAll(/[\p{Cc}\u2028\u2029]+/gu, ' ');
