/**
 * Setting a has_one moves the unique reference of the other side: the record that held the place lets go, the named one points here.
 * Both are updates of records of the other collection, under its update rules.
 */
import type { BelongsTo, HasOne } from '../../schema/model.ts';
import { ident, param, raw, sql } from '../../sql.ts';
import { forbidden, invalid, Refusal } from '../refusal.ts';
import type { Reading } from './access-context.ts';
import { GuardedUpdate } from './guarded-update.ts';
import type { HasOneSetting } from './input.ts';
import { tableOf } from './record-shape.ts';
import { touched } from './touched.ts';

export async function setHasOne(
  reading: Reading,
  id: string,
  { relation, id: wanted, pointer }: HasOneSetting,
): Promise<void> {
  const before = await holderOf(reading, { relation, id });
  if (before === wanted) return;
  if (before !== undefined) await clearHolder(reading, { relation, holder: before, pointer, isMoved: wanted !== null });
  if (wanted !== null) await setHolder(reading, { relation, holder: wanted, id });
}

/** The record that has the place now. */
async function holderOf(
  { store, q }: Reading,
  { relation, id }: { readonly relation: HasOne; readonly id: string },
): Promise<string | null | undefined> {
  const [row] = await q.rows(
    sql`SELECT x.id FROM ${store.from(relation.collection, raw('x'))} WHERE x.${ident(relation.viaColumn)} = ${param('uuid', id)} FOR UPDATE`,
  );
  return row?.[0];
}

interface Clearing {
  readonly relation: HasOne;
  readonly holder: string | null;
  readonly pointer: string;
  /** Another record takes the place. */
  readonly isMoved: boolean;
}

async function clearHolder(reading: Reading, { relation, holder, pointer, isMoved }: Clearing): Promise<void> {
  const guarded = await GuardedUpdate.lock(reading, { collection: relation.collection, id: holder! });
  if (guarded === undefined) return;
  const { isReadable } = guarded.before;
  // The caller sees nothing there: emptying it changes nothing for them.
  if (!isReadable && !isMoved) return;
  const refused = isReadable ? forbidden() : heldByHidden(pointer);
  if (!guarded.isPossible) throw refused;
  if (viaOf(reading, relation).required) throw isReadable ? cannotLetGo(relation, pointer) : refused;
  await point(reading, { relation, holder: holder!, id: null });
  if (!(await guarded.allows(reading, await guarded.after(reading)))) throw refused;
}

async function setHolder(
  reading: Reading,
  { relation, holder, id }: { readonly relation: HasOne; readonly holder: string; readonly id: string },
): Promise<void> {
  const guarded = await GuardedUpdate.lock(reading, { collection: relation.collection, id: holder });
  if (!guarded?.isPossible) throw forbidden();
  await point(reading, { relation, holder, id });
  if (!(await guarded.allows(reading, await guarded.after(reading)))) throw forbidden();
}

async function point(
  { store, q, ask }: Reading,
  { relation, holder, id }: { readonly relation: HasOne; readonly holder: string; readonly id: string | null },
): Promise<void> {
  await q.run(sql`
    UPDATE ${tableOf(store.shape(relation.collection).collection)}
       SET ${ident(relation.viaColumn)} = ${param('uuid', id)}, ${touched(ask.now)}
     WHERE id = ${param('uuid', holder)}`);
}

function viaOf({ store }: Reading, relation: HasOne): BelongsTo {
  return store.shape(relation.collection).collection.relations.get(relation.via) as BelongsTo;
}

function cannotLetGo({ name, collection, via }: HasOne, pointer: string): Refusal {
  const detail = `the record in \`${collection}\` that is \`${name}\` now must have a \`${via}\`; give it another one first`;
  return invalid([{ pointer, code: 'required', detail }]);
}

/** That there is one may be told: a place can be held once. */
function heldByHidden(pointer: string): Refusal {
  const detail = 'the place is held by another record';
  return new Refusal('unique_violation', detail, [{ pointer, code: 'unique_violation', detail }]);
}
