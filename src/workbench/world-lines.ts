/** A world as lines for people: what its decision reads, with names in place of ids. */
import { uuidNumber } from '../policy/analyse/solve/domains.ts';
import { policiesOf, type SolverQuestion } from '../policy/analyse/solve/solve.ts';
import type { World } from '../policy/analyse/solve/world.ts';
import { type Catalog, type CheckedOperand, type Row, STAMPS } from '../policy/types.ts';
import { allOperandsOf, isOfInstant, memberName } from '../policy/visit.ts';
import { type WorldDocument, worldDocument } from './world-document.ts';

/** Every value, for reports of defects. */
export function fullWorldLines(world: World, catalog: Catalog): readonly string[] {
  const document = worldDocument(world, catalog);
  return linesOf({ ...document, related: relatedRowsOf(document) }, { isSaid: () => true, inWords: (text) => text });
}

/** The members that every row has, or every user, and that say nothing if no rule reads them. */
const UNSAID: readonly string[] = [...STAMPS, 'email', 'email_verified'];

/** The values that the policies of a question may read, and those that the schema requires. */
export function worldLines(world: World, asking: SolverQuestion, catalog: Catalog): readonly string[] {
  const operands = policiesOf(asking).flatMap(({ checked }) => allOperandsOf(checked));
  const read = new Set(operands.flatMap(namesOfOperand));
  const { request, ...document } = worldDocument(world, catalog);
  const caller = world.isGuest ? undefined : world.request.auth?.id;
  const related = relatedRowsOf(document).filter(([name, { id }]) => name !== 'users' || id !== caller);
  const names = worldNames(world, related);
  const { now, query, data = {}, ...facts } = request;
  const asked = {
    ...(operands.some(isOfInstant) && { now }),
    ...facts,
    ...(Object.keys(query).length > 0 && { query }),
    ...(Object.keys(data).length > 0 && { data }),
  };
  const named = related.map(([name, row]) => [names.get(row.id) ?? name, row] as const);
  return linesOf(
    { ...document, request: asked, related: named },
    {
      isSaid: (key, value) => (key === 'id' ? !names.has(value) : read.has(key) || !UNSAID.includes(key)),
      inWords: (text) => text.replaceAll(ANY_ID, (id) => names.get(id) ?? id),
    },
  );
}

function namesOfOperand(operand: CheckedOperand): readonly string[] {
  if (operand.kind === 'column') return operand.column.kind === 'id' ? [] : [memberName(operand.column)];
  return operand.kind === 'request' ? [operand.name] : [];
}

const relatedRowsOf = ({ related }: Pick<WorldDocument, 'related'>): readonly NamedRow[] =>
  Object.entries(related).flatMap(([name, rows]) => rows.map((row) => [name, row] as const));

const ANY_ID = /\b[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-8[0-9a-f]{3}-[0-9a-f]{12}\b/g;
/** Ids that the solver has made, and no policy states. */
const MADE_IDS = uuidNumber(0).slice(0, 24);

type NamedRow = readonly [collection: string, row: Row];

/** `documents 2` for the second row beside the caller and the record. */
function worldNames(
  { record, written, request, isGuest }: World,
  related: readonly NamedRow[],
): ReadonlyMap<unknown, string> {
  const names = new Map<unknown, string>();
  const counts = new Map<string, number>();
  for (const [name, { id }] of related) {
    counts.set(name, (counts.get(name) ?? 0) + 1);
    names.set(id, `${name} ${counts.get(name)}`);
  }
  names.set((record ?? written)?.id, 'the record');
  if (!isGuest) names.set(request.auth?.id, 'the caller');
  return new Map([...names].filter(([id]) => String(id).startsWith(MADE_IDS)));
}

interface ShownWorld extends Omit<WorldDocument, 'request' | 'related'> {
  readonly request: object;
  readonly related: readonly NamedRow[];
}

interface WorldWords {
  isSaid(key: string, value: unknown): boolean;
  /** The text with names in place of ids. */
  inWords(text: string): string;
}

function linesOf({ caller, request, record, next, related, links }: ShownWorld, { isSaid, inWords }: WorldWords) {
  /** Members that are null say nothing, unless a write has made them so. */
  const shown = (row: object, isKept = (value: unknown): boolean => value !== null): string =>
    inWords(
      JSON.stringify(
        Object.fromEntries(Object.entries(row).filter(([key, value]) => isSaid(key, value) && isKept(value))),
      ),
    );
  const changed = Object.entries(next ?? {}).filter(([key, value]) => jsonOf(value) !== jsonOf(record[key]));
  const becomes = shown(Object.fromEntries(changed), () => true);
  return [
    `caller   ${caller === 'guest' ? 'guest' : shown(caller)}`,
    ...(Object.keys(request).length === 0 ? [] : [`request  ${inWords(JSON.stringify(request))}`]),
    `record   ${shown(record)}`,
    ...(next === undefined ? [] : [`becomes  ${becomes === '{}' ? 'the same' : becomes}`]),
    ...related.map(([name, row]) => `related  ${name} ${shown(row)}`),
    ...links.map((link) => inWords(`linked   ${link.collection}.${link.relation} ${link.owner} ${link.element}`)),
  ];
}

const jsonOf = (value: unknown): string => JSON.stringify(value ?? null);
