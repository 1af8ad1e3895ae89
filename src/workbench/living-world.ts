import type { World } from '../policy/analyse/solve/world.ts';
import { livingName } from '../policy/deleted-names.ts';
import type { Row } from '../policy/types.ts';

/** The world as documents and tests name it: a deleted record is a row of its collection. */
export function livingWorld(world: World): World {
  const rows = new Map<string, readonly Row[]>();
  for (const [name, own] of world.rows) {
    const living = livingName(name);
    rows.set(living, [...(rows.get(living) ?? []), ...own]);
  }
  return { ...world, collection: livingName(world.collection), rows };
}
