import { numberKind } from './number.ts';

export const float = numberKind({
  name: 'float',
  doc: 'a finite double; `-0` is stored as `0`',
  column: 'double precision',
  expected: 'a finite number',
  adoption: { narrower: ['real'] },
  jsonSchema: ({ min, max }) => ({
    type: 'number',
    minimum: min,
    maximum: max,
  }),
});
