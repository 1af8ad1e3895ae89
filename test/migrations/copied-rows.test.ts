/** On a cluster, the tables that each machine has a copy of keep nothing. */
import { expect, test } from 'vitest';
import { assertNothingKept } from '../../src/migrations/changes/copied-rows.ts';
import { schemaOf } from '../support/store-world.ts';

test('a history and deleted records of a reference table are refused with what to remove', () => {
  const kept = ['history', 'soft_delete'].map((key) => `of_${key}: { distribute: reference, ${key}: true }`);
  const others = 'own: { history: true, soft_delete: true }, copied: { distribute: reference }';
  expect(() => assertNothingKept(schemaOf(`collections: { ${kept.join(', ')}, ${others} }`))).toThrow(
    'a cluster of Citus keeps no history and no deleted records of `of_history`, `of_soft_delete`, of which each machine has a copy; ' +
      'remove `history` and `soft_delete`, or `distribute`',
  );
  expect(() => assertNothingKept(schemaOf(`collections: { ${others} }`))).not.toThrow();
});
