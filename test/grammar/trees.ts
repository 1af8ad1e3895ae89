/** Random trees, as the parser would build them. */
import fc from 'fast-check';
import type {
  AncestorsCall,
  CompareOp,
  Expr,
  Name,
  NowReference,
  Operand,
  Path,
  QuantifierWord,
  Span,
} from '../../grammar/syntax.ts';
import { COMPARE_OPS, RESERVED } from '../../grammar/tokens.ts';

const span: Span = { start: 0, end: 0 };
const SECONDS = { s: 1, m: 60, h: 3600, d: 86400, w: 604800 } as const;

const name = (free: boolean): fc.Arbitrary<Name> =>
  fc
    .oneof(
      fc.constantFrom('id', 'in', 'and', 'owner_id', '__proto__', '_x', 'Any', 'null'),
      fc.stringMatching(/^[A-Za-z_][A-Za-z0-9_]{0,9}$/),
    )
    .filter((text) => !free || !RESERVED.has(text.toLowerCase()))
    .map((text) => ({ name: text, span }));

const path: fc.Arbitrary<Path> = fc.oneof(
  fc
    .tuple(
      fc.constantFrom('record', 'next', 'auth', 'query', 'data'),
      fc.array(name(false), { minLength: 1, maxLength: 3 }),
    )
    .map(([root, steps]) => ({ kind: 'path', root, steps, span }) as const),
  fc
    .tuple(name(true), fc.array(name(false), { maxLength: 3 }))
    .map(([variable, steps]) => ({ kind: 'path', root: 'variable', variable, steps, span }) as const),
);

const storable = fc
  .string({ unit: 'binary', maxLength: 12 })
  .filter((text) => text.isWellFormed() && !text.includes('\0'));
const literal = fc.oneof(
  storable.map((value) => ({ kind: 'text', value, span }) as const),
  fc
    .oneof(
      fc.integer().map(String),
      fc.double({ noNaN: true, noDefaultInfinity: true }).map((value) => JSON.stringify(value)),
    )
    .map((source) => ({ kind: 'number', source, span }) as const),
  fc.boolean().map((value) => ({ kind: 'bool', value, span }) as const),
  fc.constant({ kind: 'null', span } as const),
);

const now: fc.Arbitrary<NowReference> = fc.oneof(
  fc.constant({ kind: 'now', seconds: 0, span } as const),
  fc
    .tuple(fc.constantFrom('+', '-'), fc.nat(999), fc.constantFrom('s', 'm', 'h', 'd', 'w'))
    .map(([sign, amount, unit]) => {
      const seconds = (sign === '-' ? -1 : 1) * amount * SECONDS[unit] + 0;
      return { kind: 'now', seconds, offset: { sign, amount, unit }, span } as const;
    }),
);

const ancestors: fc.Arbitrary<AncestorsCall> = fc
  .tuple(path, fc.stringMatching(/^q[A-Za-z0-9_]{0,9}$/))
  .map(([start, by]) => ({ kind: 'ancestors', path: start, by: { name: by, span }, span }));
const elements = fc.oneof({ weight: 3, arbitrary: path }, { weight: 1, arbitrary: ancestors });

const operand: fc.Arbitrary<Operand> = fc.oneof(
  path,
  ancestors,
  elements.map((each) => ({ kind: 'count', path: each, span }) as const),
  literal,
  now,
  fc.array(literal, { maxLength: 4 }).map((items) => ({ kind: 'list', items, span }) as const),
);

export const trees: fc.Arbitrary<Expr> = fc.letrec<{ expr: Expr }>((tie) => ({
  expr: fc.oneof(
    { maxDepth: 4, withCrossShrink: true },
    fc
      .tuple(operand, fc.constantFrom<CompareOp>(...COMPARE_OPS), operand)
      .map(([left, op, right]) => ({ kind: 'compare', op, opSpan: span, left, right, span }) as const),
    fc
      .tuple(operand, fc.boolean())
      .map(([each, negated]) => ({ kind: 'is null', negated, operand: each, span }) as const),
    operand.map((each) => ({ kind: 'truth', operand: each, span }) as const),
    fc
      .tuple(name(true), fc.array(operand, { maxLength: 3 }))
      .map(([each, args]) => ({ kind: 'call', name: each, args, span }) as const),
    tie('expr').map((item) => ({ kind: 'not', item, span }) as const),
    fc
      .tuple(fc.constantFrom('and', 'or'), fc.array(tie('expr'), { minLength: 2, maxLength: 3 }))
      .map(([kind, items]) => ({ kind, items, span }) as const),
    fc
      .tuple(fc.constantFrom<QuantifierWord>('any', 'all', 'none'), elements, name(true), tie('expr'))
      .map(
        ([quantifier, each, variable, condition]) =>
          ({ kind: 'quantified', quantifier, path: each, variable, condition, span }) as const,
      ),
  ),
})).expr;

/** Without places, for comparing trees. */
export const withoutSpans = (value: unknown): unknown =>
  JSON.parse(JSON.stringify(value, (key, inner: unknown) => (key === 'span' || key === 'opSpan' ? undefined : inner)));
