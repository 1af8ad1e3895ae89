import { numberKind } from './number.ts';

export const float = numberKind({
  name: 'float',
  doc: 'a finite double; `-0` is stored as `0`',
  column: 'double precision',
  expected: 'a finite number',
  // The shortest text of a real is its value: a stored 0.1 is 0.1.
  adoption: { narrower: ['real'], storedAs: { real: { column: 'real', readAs: '::text::float8' } } },
  jsonSchema: ({ min, max }) => ({
    type: 'number',
    minimum: min,
    maximum: max,
  }),
});
