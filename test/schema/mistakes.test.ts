// @module-tag long
/**
 * Mistakes that authors make: the checker reports each of them, with an error or a warning. The rules are
 * data (mistakes.yaml), each beside the rules of one schema without any issue.
 */
import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { parseSchema, type SchemaIssue } from '../../src/schema/load.ts';

interface Mistake {
  readonly mistake: string;
  /** Such as `documents.update`. */
  readonly rule: string;
  readonly when: string;
  readonly roles?: readonly string[];
  /** Fields that the schema has besides. */
  readonly fields?: Readonly<Record<string, unknown>>;
  readonly gives: Given | readonly Given[];
}
interface Given {
  readonly error?: string;
  readonly warning?: string;
  readonly marks: string;
  readonly fix?: string;
}
interface Table {
  readonly schema: { readonly collections: Readonly<Record<string, object>> };
  readonly mistakes: readonly Mistake[];
  readonly silent: readonly Omit<Mistake, 'mistake' | 'gives'>[];
}

const { schema, mistakes, silent } = parse(readFileSync(new URL('mistakes.yaml', import.meta.url), 'utf8')) as Table;

/** The file, as JSON, which is YAML. Each value is on its own line. */
function textWith({ rule, when, roles, fields = {} }: Omit<Mistake, 'mistake' | 'gives'>): string {
  const [name = '', action = ''] = rule.split('.');
  const { collections } = schema;
  const given = collections[name] as { readonly access: object; readonly fields: object };
  const access = { ...given.access, [action]: roles === undefined ? when : [{ roles, when }] };
  const changed = { ...given, access, fields: { ...given.fields, ...fields } };
  return JSON.stringify({ ...schema, collections: { ...collections, [name]: changed } }, undefined, 1);
}

const offsetOf = (text: string, line: number, column: number): number =>
  text
    .split('\n')
    .slice(0, line - 1)
    .join('\n').length +
  (line > 1 ? 1 : 0) +
  column -
  1;

function givenBy(mistake: Mistake): Given[] {
  const text = textWith(mistake);
  return parseSchema(text).issues.map(({ severity, code, fix, ...at }: SchemaIssue) => {
    const marked = text.slice(offsetOf(text, at.line, at.column), offsetOf(text, at.end_line, at.end_column));
    const start = fix && offsetOf(text, fix.line, fix.column);
    const end = fix && offsetOf(text, fix.end_line, fix.end_column);
    const fixed = fix && text.slice(0, start) + fix.replacement + text.slice(end);
    const marks = marked.startsWith('"') ? JSON.parse(marked) : marked.replaceAll('\\"', '"');
    return { [severity]: code, marks, ...(fixed !== undefined && { fix: ruleIn(fixed, mistake) }) };
  });
}

/** The text of the rule in a fixed file. */
function ruleIn(text: string, { rule }: Mistake): string {
  const [name = '', action = ''] = rule.split('.');
  const rules = parse(text).collections[name].access[action];
  return typeof rules === 'string' ? rules : rules[0].when;
}

describe('mistakes of authors', () => {
  it('the schema around the mistakes has no issue', () => {
    expect(parseSchema(JSON.stringify(schema)).issues).toEqual([]);
  });

  it.each(mistakes)('the checker reports $mistake: $when', (mistake) => {
    expect(givenBy(mistake)).toEqual([mistake.gives].flat());
  });

  it.each(silent)('the checker accepts silently $when', (rule) => {
    const codes = parseSchema(textWith(rule)).issues.map(({ code }) => code);
    // Two warnings are about the speed and the keys of lists.
    expect(codes.filter((code) => code !== 'unindexed' && code !== 'list_never_met')).toEqual([]);
  });

  it('no fix brings an issue of its own', () => {
    for (const mistake of mistakes) {
      const given = [mistake.gives].flat();
      for (const { fix } of given) {
        if (fix === undefined) continue;
        // The checker looks for an index once the rule compiles.
        const left = givenBy({ ...mistake, when: fix }).filter(({ warning }) => warning !== 'unindexed');
        expect(left.length, fix).toBeLessThan(given.length);
      }
    }
  });

  it('the table holds the mistakes of the reviews', () => {
    expect(mistakes.length).toBeGreaterThanOrEqual(68);
  });
});
