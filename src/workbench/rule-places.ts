/** The place of every rule and check of a schema, and of the parts of its text in the file. */
import { type Checked, type Policy, RULED_ACTIONS, type RuledAction } from '../policy/types.ts';
import { memberRulePlace, rulePlace } from '../schema/advice/read-access.ts';
import { type DocumentPath, pathText, type Region } from '../schema/file/issue.ts';
import type { SchemaFile } from '../schema/file/shape.ts';
import { SourceText } from '../schema/file/source.ts';
import { rulesOfAction } from '../schema/model/kept/soft-delete.ts';
import type { Check, Schema } from '../schema/model/model.ts';
import { pathOfCheck } from '../schema/rules/checks.ts';

export interface PlacedRule {
  readonly collection: string;
  readonly action: RuledAction;
  /** Given for the rule of a field or belongs_to. */
  readonly member: string | undefined;
  /** For a check, the rule that holds for its violations by updates. */
  readonly rule: Policy;
  /** Given for a check, and for the transitions of a field. */
  readonly check?: Check;
  /** Such as `collections.documents.access.list[1]`. */
  readonly path: string;
  /** The place of a part of the rule; that of the rule where the part is not in its own text. */
  placeOf(node: Pick<Checked, 'span'>): Region;
}

/** Every policy that is compiled from the text: of a check, its violations by creates and by updates. */
export const policiesOfRule = ({ rule, check }: PlacedRule): readonly Policy[] =>
  check === undefined ? [rule] : [...check.violated.create, ...check.violated.update];

/** Rules of the file, each once: those of a `view` are the rules of `list`. Built-in rules have no place and are left out. */
export function placedRules(schema: Schema, text: string): readonly PlacedRule[] {
  const source = new SourceText(text, schema.file);
  const shapes = ((source.value() ?? {}) as SchemaFile).collections ?? {};
  const known = new Set<Policy>();
  const placed: PlacedRule[] = [];
  const add = (rule: Policy, path: DocumentPath, about: Pick<PlacedRule, 'collection' | 'action' | 'member'>): void => {
    if (known.has(rule)) return;
    known.add(rule);
    placed.push({ ...about, rule, path: pathText(path), placeOf: (node) => regionOf(source, { rule, path }, node) });
  };
  for (const collection of schema.collections.values()) {
    const { name, memberAccess, checks } = collection;
    if (shapes[name] === undefined) continue;
    for (const action of RULED_ACTIONS) {
      if (shapes[name].access === undefined) continue;
      for (const [index, rule] of rulesOfAction(collection, action).entries())
        add(rule, rulePlace({ collection: name, action, index }, { shapes }), {
          collection: name,
          action,
          member: undefined,
        });
    }
    for (const [member, rules] of memberAccess) {
      for (const action of ['read', 'create', 'update'] as const) {
        const key = action === 'read' ? 'read' : 'write';
        for (const [index, rule] of (rules[action] ?? []).entries())
          add(rule, memberRulePlace({ collection: name, member, key, index }, { shapes }), {
            collection: name,
            action,
            member,
          });
      }
    }
    for (const check of checks) placed.push(placedCheck(check, name, source));
  }
  return placed;
}

function placedCheck(check: Check, collection: string, source: SourceText): PlacedRule {
  const path = pathOfCheck(collection, check);
  const rule = check.violated.update[0]!;
  const { transitions, when } = check;
  const placeOf: PlacedRule['placeOf'] = (node) =>
    transitions === undefined
      ? regionOf(source, { rule, path }, node)
      : source.placeOf([...path, ...replacedValue(when, node)], 'key');
  return { collection, action: 'update', member: undefined, rule, check, path: pathText(path), placeOf };
}

const REPLACED_VALUE = /@record\.\w+ = ("(?:[^"\\]|\\.)*"|-?\d+)/g;

/** The value whose successors a part of the text of transitions is about; empty: all of them. */
function replacedValue(text: string, { span }: Pick<Checked, 'span'>): readonly string[] {
  if (span.end === text.length && span.start === 0) return [];
  const last = [...text.slice(0, span.end).matchAll(REPLACED_VALUE)].at(-1)?.[1];
  return last === undefined ? [] : [String(JSON.parse(last))];
}

function regionOf(
  source: SourceText,
  { rule, path }: { readonly rule: Policy; readonly path: DocumentPath },
  { span }: Pick<Checked, 'span'>,
): Region {
  const { when = '' } = rule.parts;
  const isOwn = span.source === undefined && span.end <= when.length;
  const within = isOwn ? source.placeWithin(source.conditionPath(path), span) : undefined;
  return within ?? source.placeOf(path);
}

/** The text of a part, which for the body of a named condition is in that body. */
export function textOfPart({ source, text }: Pick<Policy, 'source' | 'text'>, { span }: Pick<Checked, 'span'>): string {
  const { start, end, source: body } = span;
  if (body !== undefined) return body.slice(start, end);
  return start === 0 && end === source.length ? text : source.slice(start, end);
}
