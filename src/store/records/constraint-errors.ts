/** Refusals of a write that the database makes, told in the body's terms. */
import { type Fault, Problem } from '../../problem.ts';
import type { Collection, Field, Relation } from '../../schema/model.ts';
import { param, raw, sql } from '../../sql.ts';
import { StoreError } from '../database/contract.ts';
import { nameOf } from '../migrations/tables.ts';
import { type Reading, readable } from './access-context.ts';
import { pointerTo, type ReferencedId } from './input.ts';

export const invalid = (faults: readonly Fault[]): Problem =>
  new Problem('validation_failed', 'the data is not valid', { errors: faults });

const missing = ({ collection, pointer }: ReferencedId): Fault => ({
  pointer,
  code: 'not_found',
  detail: `there is no such record in \`${collection}\``,
});

/** A related record must exist and be readable; the fault does not say which it is not. */
export async function unreadableMentions(
  { store, q, ask }: Reading,
  mentions: readonly ReferencedId[],
): Promise<readonly Fault[]> {
  const byCollection = Map.groupBy(mentions, ({ collection }) => collection);
  const faults = await Promise.all(
    [...byCollection].map(async ([collection, group]) => {
      const ids = [...new Set(group.map(({ id }) => id))];
      const rows = await q.rows(
        sql`SELECT x.id FROM ${store.from(collection, raw('x'))} WHERE x.id = ANY(${param('uuid[]', ids)}) AND ${readable(ask, collection, 'x')}`,
      );
      const found = new Set(rows.map(([id]) => id));
      return group.filter(({ id }) => !found.has(id)).map(missing);
    }),
  );
  return faults.flat();
}

/** A constraint that refused a write → the problem that the caller is told of. */
export function toProblem(error: unknown, collection: Collection): unknown {
  if (!(error instanceof StoreError)) return error;
  if (error.kind === 'unique') return uniqueViolation(collection, error.constraint);
  if (error.kind === 'foreign_key') return lostReference(collection, error.constraint);
  return error;
}

function uniqueViolation(collection: Collection, constraint: string | undefined): Problem {
  const name = memberOf(collection, constraint, 'key');
  const detail =
    name === undefined ? 'a value must be unique, and another record has it' : `another record has this \`${name}\``;
  return new Problem('unique_violation', detail, {
    errors: [
      { ...(name === undefined ? {} : { pointer: pointerTo('/data', name) }), code: 'unique_violation', detail },
    ],
  });
}

/** The related record went while the write was under way. */
function lostReference(collection: Collection, constraint: string | undefined): Problem {
  const name = memberOf(collection, constraint, 'fkey');
  const detail = 'there is no such record any more';
  return invalid([{ pointer: name === undefined ? '/data' : pointerTo('/data', name), code: 'not_found', detail }]);
}

/** INVARIANT: constraints are named by their columns (tables.ts). */
function memberOf(collection: Collection, constraint: string | undefined, suffix: 'key' | 'fkey'): string | undefined {
  const members = [...collection.fields.values(), ...collection.relations.values()];
  return members.find((member) => constraintsOf(collection, member, suffix).includes(constraint ?? ''))?.name;
}

function constraintsOf(collection: Collection, member: Field | Relation, suffix: 'key' | 'fkey'): readonly string[] {
  if ('column' in member) return [nameOf(collection.table, [member.column], suffix)];
  return member.kind === 'many_to_many' ? [nameOf(member.linkTable, [member.targetColumn], suffix)] : [];
}

export function stillReferenced(): Problem {
  return new Problem('still_referenced', 'other records refer to this one');
}
