/**
 * The rules in the text of a schema: read, and written in their place, so that the rest of the file stays as it is. A
 * chunk of its own, with the reader of YAML: only `load-editor.ts` imports it.
 */
import { isAlias, isMap, isScalar, isSeq, type Node, parseDocument, type Scalar, type YAMLMap } from 'yaml';
import { quotedScalar } from './quoted-scalar.ts';

export interface TextRule {
  readonly roles: readonly string[];
  readonly when?: string;
  readonly message?: string;
  /** Given for a condition: its quotes included. */
  readonly place?: { readonly offset: number; readonly length: number };
}
/** The keys down to the rules: `collections`, `posts`, `access`, `read`. */
export type RulePath = readonly string[];

interface RuleSetInText {
  readonly action: string;
  /** Given for rules of a field or a belongs_to. */
  readonly member?: string;
}

/** `view` is `list` and `read` in one. */
export function rulePathIn(text: string, collection: string, { action, member }: RuleSetInText): RulePath {
  const { contents } = parseDocument(text);
  const all = ['collections', collection];
  const has = (...path: readonly string[]): boolean => walk(contents, [...all, ...path]).rest.length === 0;
  if (member !== undefined) {
    const part = has('relations', member) ? 'relations' : 'fields';
    return [...all, part, member, 'access', action === 'read' ? 'read' : 'write'];
  }
  const isView = (action === 'list' || action === 'read') && has('access', 'view');
  return [...all, 'access', isView ? 'view' : action];
}

/** No rule where the path ends early. Undefined: the text is broken, or its rules are written by reference. */
export function readRules(text: string, path: RulePath): readonly TextRule[] | undefined {
  const document = parseDocument(text);
  if (document.errors.length > 0) return undefined;
  const { node, rest } = walk(document.contents, path);
  if (isAlias(node)) return undefined;
  if (rest.length > 0 || node === null) return [];
  if (!isSeq(node)) return ruleIn(text, node);
  const all = node.items.map((item) => ruleIn(text, item as Node));
  return all.includes(undefined) ? undefined : all.flatMap((rules) => rules!);
}

/** The text with one more rule at the path. Undefined: it cannot be written there. */
export function withRule(text: string, path: RulePath, rule: TextRule): string | undefined {
  const rules = readRules(text, path);
  if (rules === undefined) return undefined;
  const { node, rest } = walk(parseDocument(text).contents, path);
  if (rest.length > 0 || !isSeq(node) || node.flow === true) return writeRules(text, path, [...rules, rule]);
  const { offset, length } = textPlaceOf(text, node);
  const indent = indentAt(text, offset);
  const written = `\n${indent}- ${ruleParts(rule).join(`\n${indent}  `)}`;
  return spliced(text, { offset: offset + length, length: 0 }, written);
}

/** The text without the rule of this index. Without any rule, the action is denied to all. */
export function withoutRule(text: string, path: RulePath, index: number): string | undefined {
  const rules = readRules(text, path);
  if (rules === undefined) return undefined;
  const { node } = walk(parseDocument(text).contents, path);
  if (!isSeq(node) || node.flow === true || node.items.length < 2)
    return writeRules(text, path, rules.toSpliced(index, 1));
  const { offset, length } = textPlaceOf(text, node.items[index] as Node);
  const start = text.lastIndexOf('\n', offset) + 1;
  const next = text.indexOf('\n', offset + length);
  return text.slice(0, start) + (next < 0 ? '' : text.slice(next + 1));
}

interface RolesOfRule {
  readonly index: number;
  readonly roles: readonly string[];
}
/** The condition of a rule that loses its last role, and had no condition. */
const NEVER_TEXT = 'false';

/** The text with these roles in the rule of this index. Undefined: they cannot be written there. */
export function withRoles(text: string, path: RulePath, { index, roles }: RolesOfRule): string | undefined {
  const rule = readRules(text, path)?.[index];
  const { node, rest } = walk(parseDocument(text).contents, path);
  if (rule === undefined || rest.length > 0 || node === null) return undefined;
  const item = isSeq(node) ? (node.items[index] as Node) : node;
  const given = isMap(item) ? (item.get('roles', true) as Node | undefined) : undefined;
  const written = `[${roles.join(', ')}]`;
  if (roles.length > 0 && isSeq(given) && given.flow === true) return spliced(text, textPlaceOf(text, given), written);
  if (roles.length > 0 && isMap(item) && given === undefined) {
    const { offset } = textPlaceOf(text, item);
    if (item.flow) return spliced(text, { offset: offset + 1, length: 0 }, ` roles: ${written},`);
    return spliced(text, { offset, length: 0 }, `roles: ${written}\n${indentAt(text, offset)}`);
  }
  const when = roles.length === 0 ? { when: rule.when ?? NEVER_TEXT } : {};
  return spliced(text, textPlaceOf(text, item), printRule({ ...rule, ...when, roles }));
}

function writeRules(text: string, path: RulePath, rules: readonly TextRule[]): string | undefined {
  const { node, rest } = walk(parseDocument(text).contents, path);
  if (node === null || isAlias(node)) return undefined;
  const printed = printRules(rules);
  if (rest.length === 0) return spliced(text, textPlaceOf(text, node), printed);
  const value = rest.slice(1).reduceRight((inner, key) => `{ ${key}: ${inner} }`, printed);
  if (isMap(node)) return withPair(text, node, `${rest[0]}: ${value}`);
  // The short form of a field is its type alone.
  if (!isScalar(node) || typeof node.value !== 'string') return undefined;
  const place = textPlaceOf(text, node);
  const type = text.slice(place.offset, place.offset + place.length);
  return spliced(text, place, `{ type: ${type}, ${rest[0]}: ${value} }`);
}

interface WalkedNode {
  readonly node: Node | null;
  /** The keys that the text does not have. */
  readonly rest: RulePath;
}

function walk(root: Node | null, path: RulePath): WalkedNode {
  let node = root;
  for (const [i, key] of path.entries()) {
    const next = isMap(node) ? (node.get(key, true) as Node | undefined) : undefined;
    if (next === undefined) return { node, rest: path.slice(i) };
    node = next;
  }
  return { node, rest: [] };
}

/** A list of one rule, or of none; undefined: another shape. */
function ruleIn(text: string, node: Node): readonly TextRule[] | undefined {
  if (isScalar(node)) {
    if (node.value === false) return [];
    return [{ roles: [], ...conditionIn(text, node) }];
  }
  if (!isMap(node)) return undefined;
  const { roles = [], message } = node.toJSON() as { roles?: readonly string[]; message?: string };
  const when = node.get('when', true) as Node | undefined;
  if (when !== undefined && !isScalar(when)) return undefined;
  return [{ roles, ...(when && conditionIn(text, when)), ...(message !== undefined && { message }) }];
}

function conditionIn(text: string, node: Scalar): Pick<TextRule, 'when' | 'place'> {
  const { value } = node;
  return typeof value === 'string' ? { when: value, place: textPlaceOf(text, node) } : { when: String(value) };
}

interface OffsetPlace {
  readonly offset: number;
  readonly length: number;
}

/** Without the line breaks after a block. */
function textPlaceOf(text: string, { range }: Node): OffsetPlace {
  const [start = 0, end = 0] = range ?? [];
  return { offset: start, length: text.slice(start, end).trimEnd().length };
}

const spliced = (text: string, { offset, length }: OffsetPlace, written: string): string =>
  text.slice(0, offset) + written + text.slice(offset + length);

function withPair(text: string, map: YAMLMap, pair: string): string {
  const place = textPlaceOf(text, map);
  if (map.flow) {
    const inner = text
      .slice(place.offset + 1, place.offset + place.length - 1)
      .trim()
      .replace(/,$/, '');
    return spliced(text, place, `{ ${inner}${inner === '' ? '' : ', '}${pair} }`);
  }
  const end = place.offset + place.length;
  return spliced(text, { offset: end, length: 0 }, `\n${indentAt(text, place.offset)}${pair}`);
}

/** Spaces up to the column of the offset. */
const indentAt = (text: string, offset: number): string => ' '.repeat(offset - text.lastIndexOf('\n', offset - 1) - 1);

function printRules(rules: readonly TextRule[]): string {
  const [only] = rules;
  if (rules.length === 1 && only!.roles.length === 0 && only!.message === undefined)
    return quotedScalar(only!.when ?? 'true');
  return `[${rules.map(printRule).join(', ')}]`;
}

const printRule = (rule: TextRule): string => `{ ${ruleParts(rule).join(', ')} }`;

function ruleParts({ roles, when, message }: TextRule): readonly string[] {
  return [
    ...(roles.length > 0 ? [`roles: [${roles.join(', ')}]`] : []),
    ...(when === undefined && roles.length > 0 ? [] : [`when: ${quotedScalar(when ?? 'true')}`]),
    ...(message === undefined ? [] : [`message: ${quotedScalar(message)}`]),
  ];
}
