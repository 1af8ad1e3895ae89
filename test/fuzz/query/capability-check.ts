/** Checks `can`: exact if the rules read the stored record alone, else in accord with sample writes. */
import type { Row } from '../../../src/policy/types.ts';
import { readsData, readsNext } from '../../../src/policy/visit.ts';
import type { Id } from '../../oracle/database.ts';
import { interpret } from '../../oracle/interpret.ts';
import type { Random } from '../random.ts';
import type { FuzzCaller, Standing } from './caller.ts';

const SAMPLES = 4;

/** Returns the defect of the answer, or undefined. @param row as it is stored */
export function wrongCan(
  can: unknown,
  row: Row,
  { caller, standing, random }: { caller: FuzzCaller; standing: Standing; random: Random },
): string | undefined {
  const { update, delete: remove, ...others } = (can ?? {}) as Readonly<Record<string, unknown>>;
  const { everything } = standing;
  if (Object.keys(others).length > 0) return 'can has other members';
  if (caller.collection.writes?.update === false)
    return update === false && remove === false ? undefined : `update: ${update}, delete: ${remove}`;
  if (remove !== caller.holds(caller.rules.remove, row, everything)) return `delete: ${remove}`;
  const open = caller.rules.update.filter(({ meant }) => readsNext(meant) || readsData(meant));
  const closed = caller.rules.update.filter((rule) => !open.includes(rule));
  const isCertain = caller.holds(closed, row, everything);
  if (isCertain || open.length === 0) return update === isCertain ? undefined : `update: ${update}`;
  if (update === 'depends') return undefined;
  for (let i = 0; i < SAMPLES; i++) {
    const [next, data] = [sampleOf(row, { caller, standing, random }), sampleOf(row, { caller, standing, random })];
    const request = { ...caller.request, data };
    const isAllowed = open.some(
      ({ meant }) => interpret(meant, { record: row, next, related: everything, request }) === true,
    );
    if (isAllowed !== update) return `update: ${update}, but a write is ${isAllowed ? 'allowed' : 'refused'}`;
  }
  return undefined;
}

/** The record as a write would make it: some members are another record's. */
function sampleOf(
  row: Row,
  { caller, standing, random }: { caller: FuzzCaller; standing: Standing; random: Random },
): Row {
  const { name, relations } = caller.collection;
  const other = random.pick(standing.data.rows.get(name)!);
  const values = Object.entries(row).map(([key, value]) => [
    key,
    key !== 'id' && random.chance(0.4) ? other[key] : value,
  ]);
  const held = [...relations.values()].flatMap(({ kind, name: relation }) => {
    if (kind !== 'has_one' && kind !== 'many_to_many') return [];
    const ids = standing.everything
      .many(name, relation, (random.chance(0.5) ? row : other).id as Id)
      .map(({ id }) => id);
    return [[relation, kind === 'has_one' ? (ids[0] ?? null) : ids] as const];
  });
  return Object.fromEntries([...values, ...held]);
}
