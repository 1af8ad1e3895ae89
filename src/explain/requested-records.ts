/** The records whose ids a request holds, as far as a policy reads them. */
import { requestedId } from '../policy/analyse/explanation.ts';
import type { PolicyNeeds } from '../policy/analyse/policy-needs.ts';
import type { Need, PolicyRequest } from '../policy/types.ts';

interface RequestedRows {
  readonly collection: string;
  readonly id: string;
  readonly needs: readonly Need[];
}

export const requestedIn = ({ requested }: PolicyNeeds, request: PolicyRequest): readonly RequestedRows[] =>
  requested.flatMap(({ operand, needs }) => {
    const found = requestedId(operand, request);
    return found === undefined ? [] : [{ ...found, needs }];
  });
