/** `rules_race`: rules of two collections read each other's records otherwise than over one reference. */
import { describe, expect, it } from 'vitest';
import { parseSchema } from '../../../src/schema/load.ts';

interface Rules {
  readonly orders?: string;
  readonly lines?: string;
  /** Default: `true`. */
  readonly action?: 'create' | 'update' | 'delete';
}

const schemaOf = ({ orders = 'true', lines = 'true', action = 'update' }: Rules): string => `
collections:
  users: { access: { view: true } }
  depots:
    fields: { open: bool }
    relations: { orders: { kind: has_many, collection: orders, via: depot } }
    access: { view: true, create: true }
  orders:
    fields: { open: bool, name: string }
    relations:
      depot: { kind: belongs_to, collection: depots }
      lines: { kind: has_many, collection: lines, via: order }
      gifts: { kind: has_many, collection: lines, via: gift_of }
      linked: { kind: many_to_many, collection: lines }
    access: { view: true, create: true, update: '${orders}' }
  lines:
    fields: { packed: bool }
    relations:
      order: { kind: belongs_to, collection: orders }
      gift_of: { kind: belongs_to, collection: orders }
      depot: { kind: belongs_to, collection: depots }
    access: { view: true, ${action}: '${lines}' }
`;

const CLOSES = '@next.open = true or none(@next.lines as l, l.packed = false)';
const RULE = 'collections.orders.access.update';

describe('rules that read each other', () => {
  it.each<[about: string, rules: Rules, isWarned: boolean]>([
    ['over one reference', { orders: CLOSES, lines: '@next.order.open = true' }, false],
    [
      'over one reference, of which one rule reads the records alone',
      { orders: 'none(@next.lines as l, true)', lines: '@next.order.open = true', action: 'create' },
      false,
    ],
    ['over two references', { orders: CLOSES, lines: '@next.gift_of.open = true' }, true],
    [
      'over links',
      { orders: '@next.open = true or none(@next.linked as l, l.packed = false)', lines: '@next.order.open = true' },
      true,
    ],
    ['over a longer path', { orders: CLOSES, lines: 'none(@next.depot.orders as o, o.open = false)' }, true],
    [
      'in a count',
      {
        orders: 'count(@next.gifts as g, g.packed = false) < 3 or @next.open = true',
        lines: '@next.order.open = true',
      },
      true,
    ],
    ['one of which reads no other record', { orders: CLOSES, lines: '@next.packed = true' }, false],
    [
      'one of which reads what the caller has',
      { orders: '@record.name = @request.auth.email', lines: '@next.order.open = true' },
      false,
    ],
    [
      'one of which creates records that the other does not read as new',
      {
        orders: '@next.open = true or none(@next.linked as l, l.packed = false)',
        lines: '@next.order.open = true',
        action: 'create',
      },
      false,
    ],
  ])('%s', (_, rules, isWarned) => {
    const { issues } = parseSchema(schemaOf(rules));
    const found = issues.filter(({ code }) => code === 'rules_race');
    expect(issues.filter(({ severity }) => severity === 'error')).toEqual([]);
    expect(found.map(({ path, severity }) => [path, severity])).toEqual(isWarned ? [[RULE, 'warning']] : []);
    if (isWarned)
      expect(found[0]!.message).toMatch(
        /^the rule reads records of `lines`, and the rule `lines\.access\.update` those of `orders`: writes of both /,
      );
  });

  it('a mark silences the warning', () => {
    const orders = `/* intended: the packing ends at night */ ${CLOSES}`;
    const { issues } = parseSchema(schemaOf({ orders, lines: '@next.gift_of.open = true' }));
    expect(issues.map(({ code }) => code)).not.toContain('rules_race');
    expect(issues.map(({ code }) => code)).not.toContain('intended_unneeded');
  });

  it('checks are rules for writing', () => {
    const text = schemaOf({ lines: '@next.gift_of.open = true' }).replace(
      '  lines:\n    fields',
      `  lines:\n    checks: { few: { when: '@next.gift_of.name != "x"', message: m } }\n    fields`,
    );
    const both = text.replace(
      '  orders:\n    fields',
      `  orders:\n    checks: { done: { when: '${CLOSES}', message: m } }\n    fields`,
    );
    expect(parseSchema(text).issues.map(({ code }) => code)).not.toContain('rules_race');
    const found = parseSchema(both).issues.filter(({ code }) => code === 'rules_race');
    expect(found.map(({ path }) => path)).toEqual(['collections.orders.checks.done.when']);
  });
});
