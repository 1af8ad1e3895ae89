/** Rules and instants by which the fuzz sees what a store does to records that are kept. */
import type { Expr, Path } from '../../../grammar/syntax.ts';
import { type CatalogCollection, type CatalogRelation, isToMany, type Row } from '../../../src/policy/types.ts';
import type { Data } from '../../oracle/database.ts';
import { type Setting, SPAN } from '../policies/policies.ts';
import type { Random } from '../random.ts';

const pathTo = (...names: readonly string[]): Path => ({
  kind: 'path',
  root: 'record',
  steps: names.map((name) => ({ name, span: SPAN })),
  span: SPAN,
});

/** A state does not have its time in its row, which is that of the clock of the database: later than all requests. */
function ofTime(op: '<' | '>', year: number): Expr {
  const right = { kind: 'text', value: `${year}-01-01T00:00:00Z`, span: SPAN } as const;
  return { kind: 'compare', op, opSpan: SPAN, left: pathTo('updated_at'), right, span: SPAN };
}

/** The record has it in its former states alone. */
export const IS_FORMER = ofTime('>', 2025);

/** A rule for former states: by their time, or by a record that they refer to, which may be gone. */
export function ofFormerStates(setting: Setting, random: Random): Expr {
  const isPresent = ofTime('<', 2025);
  const ofReferred = ofReferredTo(setting, random);
  const some: Expr = { kind: 'or', items: [isPresent, ofReferred ?? isPresent], span: SPAN };
  return random.pick([ofTime('>', 2024), isPresent, some, some]);
}

/** A condition on the records of a record that this one refers to. Undefined: it refers to none that has some. */
export function ofReferredTo(
  { catalog, collection }: Setting,
  random: Random,
  row: Row = {},
  data?: Data,
): Expr | undefined {
  const { collections } = catalog;
  const own = collections.get(collection)!;
  const lost = data === undefined ? [] : lostReferences(own, row, data);
  const references = lost.length > 0 ? lost : [...own.relations.values()].filter(({ kind }) => kind === 'belongs_to');
  const paths = references.flatMap((relation) => {
    const many = [...collections.get(relation.collection)!.relations.values()].filter(isToMany);
    return many.map(({ name }) => pathTo(relation.name, name));
  });
  if (paths.length === 0) return undefined;
  const variable = { name: 'm', span: SPAN };
  const condition: Expr = {
    kind: 'truth',
    operand: { kind: 'bool', value: random.chance(0.3), span: SPAN },
    span: SPAN,
  };
  const quantifier = random.pick(['all', 'none', 'none'] as const);
  return { kind: 'quantified', quantifier, path: random.pick(paths), variable, condition, span: SPAN };
}

/** A condition on the id of a record that no foreign key ensures. Undefined: the record refers to none. */
export function ofLostId({ catalog, collection }: Setting, random: Random): Expr | undefined {
  const { relations } = catalog.collections.get(collection)!;
  const losing = [...relations.values()].filter(
    (relation) => 'mayBeLost' in relation && relation.kind === 'belongs_to',
  );
  if (losing.length === 0 || random.chance(0.5)) return undefined;
  const operand = pathTo(random.pick(losing).name, 'id');
  return { kind: 'is null', negated: random.chance(0.5), operand, span: SPAN };
}

/** The references of the record to records that are gone. */
export const lostReferences = (
  { relations }: CatalogCollection,
  row: Row,
  { rows }: Data,
): readonly CatalogRelation[] =>
  [...relations.values()].filter((relation) => {
    const id = relation.kind === 'belongs_to' ? (row[relation.name] ?? null) : null;
    return id !== null && !rows.get(relation.collection)!.some((target) => target.id === id);
  });

/** The instant so many seconds later. */
export function datetimeAfter(instant: string, seconds: number): string {
  const [, whole, micros] = /^(.*)(\.\d+Z)$/.exec(instant)!;
  return `${new Date(Date.parse(`${whole}Z`) + seconds * 1000).toISOString().slice(0, 19)}${micros}`;
}
