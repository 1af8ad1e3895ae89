/** Policies about which relation of the record has one id: it is required, nearly required, or required of the other record. */
import type { Expr, Name, Operand, Path } from '../../../grammar/syntax.ts';
import type { Row } from '../../../src/policy/types.ts';
import type { Random } from '../random.ts';
import { KEY_OF, type Setting, SPAN } from './policies.ts';

const named = (name: string): Name => ({ name, span: SPAN });
const path = (root: Path['root'], ...names: readonly string[]): Path => ({
  kind: 'path',
  root,
  steps: names.map(named),
  span: SPAN,
});

interface Pinning {
  readonly setting: Setting;
  /** Ids of records of the collection: any other id would match none. */
  readonly rows: readonly Row[];
  readonly random: Random;
}
interface Reference {
  readonly name: string;
  readonly collection: string;
}

/** The policy with a requirement beside it, or in some of its branches. Undefined if the records belong to no tenant. */
export function withPin(expr: Expr, pinning: Pinning): Expr | undefined {
  const { setting, random } = pinning;
  const relations = [...setting.catalog.collections.get(setting.collection)!.relations.values()];
  const references = relations.filter(({ kind }) => kind === 'belongs_to');
  if (references.length === 0) return undefined;
  const relation = random.pick(references);
  const alike = references.filter(({ collection }) => collection === relation.collection);
  const value = heldBy(relation, pinning);
  const pin = (): Expr => {
    const of = random.chance(0.8) ? relation : random.pick(alike);
    return equality(of.name, random.chance(0.8) ? value : heldBy(relation, pinning), pinning);
  };
  const beside = chain('and', [expr, pin()]);
  const roll = random.next();
  if (roll < 0.4) return beside;
  if (roll < 0.8) return chain('or', [beside, random.chance(0.5) ? pin() : chain('and', [pin(), pin()])]);
  return { kind: 'not', item: chain('or', [negation(expr), negation(pin())]), span: SPAN };
}

function heldBy({ name, collection }: Reference, { rows, random }: Pinning): Operand {
  const roll = random.next();
  if (collection === 'users' && roll < 0.2) return path('auth', 'id');
  const held = rows.map((row) => row[name]).filter((id) => typeof id === 'string');
  if (roll < 0.4 || held.length === 0) return path('query', KEY_OF.id);
  return { kind: 'text', value: random.pick(held), span: SPAN };
}

/** In one of its spellings, now and then of `@next` or of a record that is one step away. */
function equality(relation: string, value: Operand, { setting, random }: Pinning): Expr {
  const root = setting.action === 'update' && random.chance(0.2) ? 'next' : 'record';
  const column = path(root, relation, ...(random.chance(0.15) ? ['id'] : []));
  const [left, right] = random.chance(0.4) ? [value, column] : [column, value];
  const test = (op: '=' | '!='): Expr => ({ kind: 'compare', op, opSpan: SPAN, left, right, span: SPAN });
  const roll = random.next();
  if (roll < 0.1) return test('!=');
  return roll < 0.3 ? negation(test('!=')) : test('=');
}

const negation = (item: Expr): Expr => ({ kind: 'not', item, span: SPAN });

/** Chains are flat: an item of the same kind gives its own items. */
function chain(kind: 'and' | 'or', items: readonly Expr[]): Expr {
  return { kind, items: items.flatMap((item) => (item.kind === kind ? item.items : [item])), span: SPAN };
}
