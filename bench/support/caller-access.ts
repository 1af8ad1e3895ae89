/** The access that the gate gives a member, for benches that call the store without HTTP. */
import { decide, type Permit } from '../../src/policy/access.ts';
import { updateBoundsOf } from '../../src/policy/analyse/update-bounds.ts';
import type { Action, Policy, Row } from '../../src/policy/types.ts';
import type { AccessContext } from '../../src/records/records.ts';
import type { Schema } from '../../src/schema/model/model.ts';

interface Caller {
  readonly auth: Row;
  readonly now: string;
}

export function callerAccess(schema: Schema, name: string, { auth, now }: Caller): AccessContext {
  const request = { auth, query: {}, now };
  const permit = (of: string, action: Action): Permit =>
    decide({ rules: schema.collections.get(of)!.access[action], request });
  const prospect = (rules: readonly Policy[]) => {
    const all = rules.map((rule) => updateBoundsOf(rule, schema));
    return {
      certain: decide({ rules: all.map(({ certain }) => certain), request }),
      possible: decide({ rules: all.map(({ possible }) => possible), request }),
    };
  };
  const violation: AccessContext['violation'] = (_, { violated }, by) => decide({ rules: violated[by], request });
  const caller = { auth, kind: 'user', principal: String(auth.id) } as const;
  const collection = schema.collections.get(name)!;
  return { collection, permit, member: () => undefined, violation, prospect, ...caller, now };
}
