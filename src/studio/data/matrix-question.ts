/** The question of a truth table, and its answer. */
import { transport } from './api-service.ts';
import { askedCaller } from './asked-caller.ts';
import { type NamedUser, noteUsers } from './caller-names.ts';

export type CellOutcome = 'allowed' | 'refused' | 'hidden';

export interface DraftedRule {
  readonly roles: readonly string[];
  readonly when?: string;
}
export interface AskedMatrix {
  readonly collection: string;
  readonly action: string;
  readonly member?: string;
  /** Others, whose outcomes come beside those of the records. */
  readonly members?: readonly string[];
  readonly callers: readonly string[];
  readonly ids?: readonly (string | number)[];
  /** Given for a create. */
  readonly data?: readonly object[];
  /** Given if a rule is edited. */
  readonly rules?: readonly DraftedRule[];
}
interface MatrixAnswer {
  readonly data: { readonly rows: readonly ShownMatrixRow[] };
}
export interface ShownMatrixRow {
  readonly user: NamedUser | null;
  readonly outcomes: readonly CellOutcome[];
  readonly drafted?: readonly CellOutcome[];
  readonly members?: Readonly<Record<string, readonly CellOutcome[]>>;
}

export async function askMatrix(question: AskedMatrix): Promise<readonly ShownMatrixRow[]> {
  const body = { ...question, callers: question.callers.map(askedCaller) };
  const answer = await transport.json<MatrixAnswer>('/api/_matrix', { method: 'POST', body });
  const { rows } = answer.data;
  noteUsers(rows.map(({ user }) => user));
  return rows;
}
