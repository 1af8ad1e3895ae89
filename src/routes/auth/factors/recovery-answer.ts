/** Describes new recovery codes. Not a route. */
import { object, type RouteAnswer, TEXT } from '../../../describe/operation.ts';

export const recoveryAnswer: RouteAnswer = {
  description: 'Ten codes; each replaces one code of the authenticator. No other answer has them.',
  shape: () => object({ recovery_codes: { type: 'array', items: TEXT } }),
};
