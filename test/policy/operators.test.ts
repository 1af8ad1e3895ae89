/** The table of operators is the only place in the compiler that knows an operator by name. */
import { globSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { parse } from '../../grammar/parser.ts';
import { COMPARE_OPS, OPERATOR_WORDS, RESERVED, WITHIN } from '../../grammar/tokens.ts';
import { equalityOf, isMember, isNonMember, membershipOf, OPERATORS, orderOf } from '../../src/policy/operators.ts';

const ROOT = `${import.meta.dirname}/../..`;
const TABLE = 'src/policy/operators.ts';
const SQL_TABLE = 'src/policy/emit/operator-sql.ts';
const stages = globSync('src/policy/**/*.ts', { cwd: ROOT }).filter((file) => file !== TABLE && file !== SQL_TABLE);
/** Quoted by itself, as a value or a key of code. The `'!='` of emitted JavaScript is not an operator of the language. */
const named = (op: string): RegExp => new RegExp(`'${op}'(?!.* null)`);

describe('the table of operators', () => {
  it('the table holds every spelling of the grammar under its own symbol', () => {
    expect(Object.values(OPERATORS).map(({ symbol }) => symbol)).toEqual(Object.keys(OPERATORS));
    expect(Object.keys(OPERATORS).sort()).toEqual([...COMPARE_OPS, WITHIN].sort());
  });

  it('no other file knows an operator by name', () => {
    expect(stages.length).toBeGreaterThan(20);
    const found = stages.flatMap((file) =>
      readFileSync(`${ROOT}/${file}`, 'utf8')
        .split('\n')
        .filter((line) => COMPARE_OPS.some((op) => named(op).test(line)))
        .map((line) => `${file}: ${line.trim()}`),
    );
    expect(found).toEqual([]);
  });

  it('the grammar reserves every word of an operator, and suggests it for a typing error', () => {
    const words = COMPARE_OPS.filter((op) => /[a-z]/.test(op));
    expect(words.flatMap((op) => op.split(' ')).filter((word) => !RESERVED.has(word))).toEqual([]);
    expect(words.filter((op) => !OPERATOR_WORDS.includes(op))).toEqual([]);
    for (const op of words.filter((word) => /^\w{5,}$/.test(word))) {
      const typo = `${op.slice(0, -2)}${op.at(-1)}${op.at(-2)}`;
      expect(
        parse(`@record.a ${typo} "x"`)
          .issues.map(({ message }) => message)
          .join(),
      ).toContain(`\`${op}\``);
    }
  });

  it('no other file of the grammar or the policy lists operators of words', () => {
    const words = COMPARE_OPS.filter((op) => /[a-z]/.test(op));
    const lists = globSync(['grammar/**/*.ts', 'src/policy/**/*.ts'], { cwd: ROOT })
      .filter((file) => file !== TABLE && file !== SQL_TABLE && file !== 'grammar/tokens.ts')
      .flatMap((file) =>
        readFileSync(`${ROOT}/${file}`, 'utf8')
          .split(/[;{}]\n/)
          .filter((part) => words.filter((op) => new RegExp(`^\\s*'${op}',`, 'm').test(part)).length > 1)
          .map(() => file),
      );
    expect(lists).toEqual([]);
  });

  it('each complement and mirror leads back to its operator', () => {
    for (const { symbol, complement, mirror, sides } of Object.values(OPERATORS)) {
      if (complement !== undefined) expect(OPERATORS[complement]).toMatchObject({ complement: symbol, sides });
      if (mirror !== undefined) expect(OPERATORS[mirror]).toMatchObject({ mirror: symbol, sides });
    }
  });

  it('stages find the operators that they make by properties', () => {
    const made = [true, false].flatMap((member) => [equalityOf(member), membershipOf(member)]);
    expect(made).toEqual(['=', 'in', '!=', 'not in']);
    const orderings = (['up', 'down'] as const).flatMap((way) => [orderOf(way, true), orderOf(way, false)]);
    expect(orderings).toEqual(['>', '>=', '<', '<=']);
    expect(COMPARE_OPS.filter((op) => isMember(OPERATORS[op]))).toEqual(['=', 'in']);
    expect(COMPARE_OPS.filter((op) => isNonMember(OPERATORS[op]))).toEqual(['!=', 'not in']);
  });

  it('`holdsFor` decides as `holds` does', () => {
    const needles = ['', 'Müller', 'MULLER', 'ß', 'x'];
    for (const { holds, holdsFor } of Object.values(OPERATORS)) {
      for (const needle of holdsFor === undefined ? [] : needles)
        for (const text of ['', 'Frau Müller', 'frau muller', 'STRASSE', 'é'])
          expect(holdsFor!(needle)(text), `${needle} in ${text}`).toBe(holds(text, needle));
    }
  });

  it('direction and strictness agree with the function of each ordering', () => {
    for (const { holds, negative, direction, strict, symbol } of Object.values(OPERATORS)) {
      if (direction === undefined) continue;
      expect([holds(1, 2), holds(2, 1), holds(1, 1)], symbol).toEqual([
        direction === 'down',
        direction === 'up',
        !strict,
      ]);
      expect(negative).toBeUndefined();
    }
  });
});
