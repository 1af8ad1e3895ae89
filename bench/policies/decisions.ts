/** The decisions that the benches of policies are about: P3 for 256 records of 16 callers. */
import type { PolicyRequest, Row } from '../../src/policy/types.ts';
import type { Random } from '../../test/fuzz/random.ts';

// As many as stay in the cache: the question is what deciding costs, not what fetching costs.
export const RECORDS = 256;
const CALLERS = 16;
const NOW = '2024-06-01T12:00:00.000000Z';
const STATUSES = ['draft', 'published', 'review', 'archived'];

export interface Decision {
  readonly row: Row;
  readonly request: PolicyRequest;
}
export type Decide = (decision: number) => boolean;

export function madeDecisions(random: Random): readonly Decision[] {
  const ids = Array.from({ length: CALLERS }, () => random.uuid());
  const callers = ids.map(
    (id): PolicyRequest => ({
      auth: { id, roles: random.pick([['admin'], ['member'], ['editor', 'member'], []]) },
      query: {},
      now: NOW,
    }),
  );
  return Array.from({ length: RECORDS }, () => {
    const request = random.pick(callers);
    const day = String(1 + random.below(28)).padStart(2, '0');
    const row: Row = {
      id: random.uuid(),
      status: random.pick(STATUSES),
      due_at: random.chance(0.2) ? null : `2024-0${5 + random.below(3)}-${day}T10:00:00.000000Z`,
      owner: random.chance(0.2) ? null : random.chance(0.3) ? request.auth!.id : random.pick(ids),
    };
    return { row, request };
  });
}

/** P3 in the language that cel-js and jexl share. */
export const P3_CEL =
  `'admin' in auth.roles || (record.status in ['published', 'review'] && record.due_at != null && record.due_at < now` +
  ` && record.owner != null && record.owner == auth.id)`;

export const contextsOf = (decisions: readonly Decision[]): Record<string, unknown>[] =>
  decisions.map(({ row, request: { auth, now } }) => ({ record: row, auth: auth!, now }));

/** Throws if the contenders differ. */
export function agree(contenders: readonly { readonly name: string; readonly decide: Decide }[]): void {
  let allowed = 0;
  for (let i = 0; i < RECORDS; i++) {
    const answers = contenders.map(({ decide }) => decide(i));
    if (answers[0]) allowed++;
    const other = answers.findIndex((answer) => answer !== answers[0]);
    if (other > 0)
      throw new Error(
        `${contenders[other]!.name} decides record ${i} as ${answers[other]}, by hand it is ${answers[0]}`,
      );
  }
  if (allowed === 0 || allowed === RECORDS) throw new Error('the records do not distinguish the contenders');
  console.log(`${RECORDS} records, ${((100 * allowed) / RECORDS).toFixed(0)} % allowed, all contenders agree`);
}
