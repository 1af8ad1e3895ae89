/**
 * Compares the ids that a policy requires of a relation with the rows that it allows: every allowed
 * row has the id, and a proven id is found.
 */
import type { Checked, Residual, Row } from '../../../src/policy/types.ts';
import type { Compiler } from './compiler.ts';
import type { Setting } from './policies.ts';

interface Pinning {
  readonly setting: Setting;
  /** The belongs_tos of which the policy is proven to require one value. */
  readonly proven: ReadonlySet<string>;
  readonly residual: Residual;
  readonly rows: readonly Row[];
  /** The verdict for each row. */
  readonly expected: readonly boolean[];
  readonly counts: PinCounts;
}
/** Rows that were allowed and had the id that they must have. */
export interface PinCounts {
  pinned: number;
}
export type PinBackend = 'pinned' | 'proof';
interface PinFinding {
  readonly backend: PinBackend;
  readonly row: number;
}

export function provenIn(checked: Checked, setting: Setting, { provenPins }: Compiler): Pinning['proven'] {
  const { relations } = setting.catalog.collections.get(setting.collection)!;
  const names = [...relations.values()].flatMap(({ kind, name }) => (kind === 'belongs_to' ? [name] : []));
  return new Set(names.filter((name) => provenPins(checked, name).length > 0));
}

export function testPins({ setting, proven, residual, rows, expected, counts }: Pinning): PinFinding | undefined {
  const { collection, catalog } = setting;
  for (const relation of catalog.collections.get(collection)!.relations.values()) {
    if (relation.kind !== 'belongs_to') continue;
    const ids = residual.pinned(relation.column);
    const isMissed = proven.has(relation.name) && ids.length === 0 && residual.verdict !== 'deny';
    if (isMissed) return { backend: 'proof', row: 0 };
    const row = rows.findIndex((each, i) => expected[i] && ids.some((id) => each[relation.name] !== id));
    if (row >= 0) return { backend: 'pinned', row };
    if (ids.length > 0) counts.pinned += expected.filter(Boolean).length;
  }
  return undefined;
}
