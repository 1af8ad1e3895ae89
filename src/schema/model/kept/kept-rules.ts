/** Rules for rows that are kept: the records that they refer to may be gone. */
import { compileChecked } from '../../../policy/compile.ts';
import type { Action, Catalog, Policy } from '../../../policy/types.ts';
import type { MemberAccess } from '../model.ts';

export interface KeptRows {
  readonly catalog: Catalog;
  /** The collection whose rows are kept. */
  readonly collection: string;
}

/** The same rules for the rows that are kept. */
export const keptRules = (rules: readonly Policy[], rows: KeptRows, action: Action): readonly Policy[] =>
  rules.map((rule) => keptRule(rule, rows, action));

function keptRule(rule: Policy, rows: KeptRows, action: Action): Policy {
  const { catalog, collection: kept } = rows;
  const { beforeBody, specialise } = compileChecked({ ...rule, catalog, kept, action });
  return { ...rule, beforeBody, specialise };
}

/** The rules of members that decide who reads them. */
export const keptMemberAccess = (
  memberAccess: ReadonlyMap<string, MemberAccess>,
  rows: KeptRows,
): ReadonlyMap<string, MemberAccess> =>
  new Map(
    [...memberAccess].map(([name, rules]) => {
      const { read } = rules;
      return [name, read === undefined ? rules : { ...rules, read: keptRules(read, rows, 'read') }];
    }),
  );
