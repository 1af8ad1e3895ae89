/** The records that a write moves through has_one relations: each is an update of its own, under the rules of the other side. */
import { Problem } from '../problem.ts';
import { dryRun } from '../records/write/batch.ts';
import type { Data } from '../records/write/input.ts';
import type { Writing } from '../records/write/written-row.ts';
import { Refusal } from '../refusal.ts';
import { accessOf } from './asked-access.ts';
import type { Question } from './question.ts';

export interface PartnerTrace {
  /** The has_one that the write sets. */
  readonly name: string;
  /** The rules of the other side let the records move. */
  readonly isAllowed: boolean;
}

/** Asks writes that are undone, so that the store itself decides. INVARIANT: the rules of the record allow the write. */
export async function partnerTraces(question: Question, { partners }: Writing): Promise<readonly PartnerTrace[]> {
  const { data = {} } = question;
  if (partners.length === 0 || (await isAllowedTogether(question, data))) return namedPartners(partners, () => true);
  const alone = new Map<string, boolean>();
  for (const { relation } of partners) {
    const others = new Set(partners.map((other) => other.relation.name).filter((name) => name !== relation.name));
    const rest = Object.fromEntries(Object.entries(data).filter(([name]) => !others.has(name)));
    alone.set(relation.name, others.size > 0 && (await isAllowedTogether(question, rest)));
  }
  const isOneRefused = [...alone.values()].includes(false);
  return namedPartners(partners, (name) => isOneRefused && alone.get(name) === true);
}

const namedPartners = (partners: Writing['partners'], isAllowed: (name: string) => boolean): readonly PartnerTrace[] =>
  partners.map(({ relation: { name } }) => ({ name, isAllowed: isAllowed(name) }));

/** True also where constraints refuse it. */
async function isAllowedTogether(question: Question, data: Data): Promise<boolean> {
  const { store, action, record } = question;
  const access = accessOf({ ...question, request: { ...question.request, data } });
  try {
    await dryRun(store, (batch) =>
      action === 'create'
        ? batch.create(access, { data, relations: [] })
        : batch.update(access, { id: String(record!.id), data, relations: [], errors: [] }),
    );
    return true;
  } catch (error) {
    if (!(error instanceof Refusal || error instanceof Problem)) throw error;
    return error.code !== 'forbidden' && error.code !== 'not_found';
  }
}
