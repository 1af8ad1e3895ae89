/** The question of a truth table, and its answer. */
import { transport } from '../../data/api-service.ts';

export type CellOutcome = 'allowed' | 'refused' | 'hidden';

export interface DraftedRule {
  readonly roles: readonly string[];
  readonly when?: string;
}
export interface MatrixQuestion {
  readonly collection: string;
  readonly action: string;
  readonly callers: readonly string[];
  readonly ids: readonly (string | number)[];
  /** Given if a rule is edited. */
  readonly rules?: readonly DraftedRule[];
}
export interface MatrixRow {
  readonly user: { readonly id: string; readonly email: string } | null;
  readonly outcomes: readonly CellOutcome[];
  readonly drafted?: readonly CellOutcome[];
}

export const askMatrix = async (question: MatrixQuestion): Promise<readonly MatrixRow[]> =>
  (
    await transport.json<{ readonly data: { readonly rows: readonly MatrixRow[] } }>('/api/_matrix', {
      method: 'POST',
      body: question,
    })
  ).data.rows;
