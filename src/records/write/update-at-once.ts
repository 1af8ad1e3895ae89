/** An update in one statement, where nothing but the row itself is written. */
import { join } from '../../sql.ts';
import { readableReferences } from '../constraint-errors.ts';
import type { Written } from '../read.ts';
import type { GuardedMember } from '../relations/member-writes.ts';
import { type AtOnce, stillAccepted, type Target } from './at-once.ts';
import type { Input } from './input.ts';
import { STORED, unmoved, updateStatement, WRITTEN } from './written-row.ts';
import { WrittenView } from './written-view.ts';

interface RowChange extends Target {
  readonly input: Input;
  readonly members: readonly GuardedMember[];
}

/** Undefined: nothing was written, or one statement cannot decide. */
export async function updateAtOnce(within: AtOnce, change: RowChange): Promise<Written | undefined> {
  const { store, access, write } = within;
  const { collection, now } = access;
  const { id, input, members } = change;
  const view = new WrittenView(within);
  const writesMore = input.links.length + input.hasOnes.length > 0;
  // A change of a user has to be followed by hooks in its transaction.
  if (collection.kind === 'users' || writesMore || !view.isExact) return undefined;
  const accepted = await stillAccepted(within, change, STORED);
  if (accepted === undefined) return undefined;
  const permits = [access.permit(collection.name, 'update'), ...members.map(({ permit }) => permit)];
  const consultsOthers = view.consultsOthers || permits.some((permit) => permit.consultsOthers);
  const conditions = [
    ...permits.map(({ update }) => update.allows(STORED, WRITTEN)),
    ...readableReferences(within, input.references),
    ...(consultsOthers ? [unmoved(within, id)] : []),
    ...accepted,
  ];
  const writing = { values: input.values, members: [], partners: [] };
  const condition = join(conditions, ' AND ');
  const returning = view.columns(STORED);
  const [cells] = await write(
    updateStatement(store, {
      collection: collection.name,
      id,
      writing,
      condition,
      now,
      tenant: within.tenant,
      returning,
    }),
    id,
  );
  return cells && view.answer(id, cells);
}
