import type { PolicyIssue } from '../../grammar/errors.ts';
import type { CheckContext } from './check.ts';
import type { Checked } from './types.ts';

export function warnings(_checked: Checked, _context: CheckContext): readonly PolicyIssue[] {
  return [];
}
