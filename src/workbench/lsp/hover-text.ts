/** The meaning of the part of a policy below the pointer. */
import { examineOnce } from '../../policy/check/checker.ts';
import { compileChecked } from '../../policy/compile.ts';
import { describeType } from '../../policy/scalar-types.ts';
import type { Checked, CheckedOperand } from '../../policy/types.ts';
import { operandsOf, partsOf, scopesOf } from '../../policy/visit.ts';
import { docOf } from '../../policy/words.ts';
import { effectiveRoles } from '../../schema/model/effective-roles.ts';
import type { Schema } from '../../schema/model/model.ts';
import type { PolicyText, SchemaText } from './schema-text.ts';
import { offsetAt, rangeOfRegion, type TextPosition, type TextRange } from './text-positions.ts';

export interface Hover {
  readonly contents: { readonly kind: 'markdown'; readonly value: string };
  readonly range: TextRange;
}

interface TextMeaning {
  readonly lines: readonly string[];
  readonly start: number;
  readonly end: number;
}

export function hoverAt(file: SchemaText, position: TextPosition): Hover | undefined {
  const found = file.policyAt(offsetAt(file.text, position));
  const meaning = found && meaningAt(file, found.policy, found.index);
  const region = found && meaning && file.regionOf(found.policy, meaning);
  if (meaning === undefined || region === undefined) return undefined;
  return { contents: { kind: 'markdown', value: meaning.lines.join('\n\n') }, range: rangeOfRegion(region) };
}

function meaningAt(file: SchemaText, policy: PolicyText, index: number): TextMeaning | undefined {
  const { text, catalog } = policy;
  const call = wordAt(text, index, /[A-Za-z_]\w*(?=\()/g);
  const condition = call && catalog.conditions?.get(call.word);
  if (call !== undefined && condition !== undefined) {
    const body = file.valueAt(['conditions', conditionKey(file, call.word)]);
    return { ...call, lines: [`condition \`${condition.name}\``, inCode('', String(body))] };
  }
  const { checked } = examineOnce(text, { ...policy, errorsOnly: true });
  const leaf = checked && leafAt(checked, index);
  const operand = leaf && operandsOf(leaf).find(({ span }) => span.source === undefined && isIn(span, index));
  if (leaf !== undefined && operand !== undefined) {
    const role = operand.kind === 'literal' ? roleOf(leaf, operand, file.schema) : [];
    return { ...operand.span, lines: [typeInWords(operand), ...role, ...sqlOf(leaf, policy)] };
  }
  const word = wordAt(text, index, /@?[A-Za-z_][\w.]*|[!=<>]+/g);
  const { doc } = word === undefined ? {} : docOf(word.word);
  return word === undefined || doc === undefined ? undefined : { ...word, lines: [`\`${word.word}\`: ${doc}`] };
}

/** The key of a condition, which has its parameters. */
export function conditionKey({ raw }: Pick<SchemaText, 'raw'>, name: string): string {
  const conditions = (raw as { readonly conditions?: object } | undefined)?.conditions ?? {};
  return Object.keys(conditions).find((key) => key.trim().startsWith(`${name}(`)) ?? name;
}

const isIn = ({ start, end }: { readonly start: number; readonly end: number }, index: number): boolean =>
  start <= index && index <= end;

function leafAt(checked: Checked, index: number): Checked | undefined {
  if (checked.span.source !== undefined || !isIn(checked.span, index)) return undefined;
  for (const part of partsOf(checked)) {
    const found = leafAt(part, index);
    if (found !== undefined) return found;
  }
  return partsOf(checked).length === 0 ? checked : undefined;
}

function wordAt(text: string, index: number, pattern: RegExp) {
  const found = [...text.matchAll(pattern)].find(
    ({ 0: word, index: start }) => start <= index && index <= start + word.length,
  );
  return found && { word: found[0], start: found.index, end: found.index + found[0].length };
}

function typeInWords(operand: CheckedOperand): string {
  const isList = 'list' in operand && operand.list === true;
  const isAbsent = 'nullable' in operand && operand.nullable;
  return `${isList ? 'list of ' : ''}${describeType(operand.type)}${isAbsent ? ', or null' : ''}`;
}

/** The callers who have a role that the leaf asks for. */
function roleOf(leaf: Checked, { value }: { readonly value: unknown }, schema: Schema | undefined): readonly string[] {
  const asksRoles = operandsOf(leaf).some(
    (each) => each.kind === 'request' && each.source === 'auth' && each.name === 'roles',
  );
  if (!asksRoles || schema === undefined || typeof value !== 'string') return [];
  const having = [...schema.roles.keys()].filter((role) => effectiveRoles(schema, [role]).includes(value));
  return [`users with ${having.map((role) => `\`${role}\``).join(', ')}`];
}

/** The caller of the printed SQL. */
const SAMPLE_CALLER = { id: '00000000-0000-0000-0000-000000000000', roles: [] };

function sqlOf(leaf: Checked, { text, action, catalog }: PolicyText): readonly string[] {
  const isOfRecord = scopesOf(leaf).length > 0 && scopesOf(leaf).every(({ kind }) => kind === 'record');
  if (!isOfRecord) return [];
  const { specialise } = compileChecked({ checked: leaf, text, catalog, action }, { codegen: false });
  const residual = specialise({ auth: SAMPLE_CALLER, query: {}, now: '2026-03-01T12:00:00.000000Z' });
  return residual.verdict === 'depends' ? [inCode('sql', residual.where('t').text)] : [];
}

const inCode = (language: string, text: string): string => `\`\`\`${language}\n${text.trim()}\n\`\`\``;
