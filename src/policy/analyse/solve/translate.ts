/**
 * Checked tree → formula. Four questions are asked of a tree: that it is true, that it is false, and the
 * opposite of each. With them no negation and no third value is left.
 */

import { livingName } from '../../deleted-names.ts';
import { elementOf } from '../../scalar-types.ts';
import {
  type AncestorRelation,
  type CatalogBelongsTo,
  type Checked,
  type CheckedQuantified,
  type ColumnOperand,
  type CountOperand,
  type HasOne,
  type Member,
  MOST_ANCESTORS,
  type RequestOperand,
  type RowScope,
  type ToManyPath,
  type ToOneStep,
} from '../../types.ts';
import { isOfCaller, memberName } from '../../visit.ts';
import type { Asked } from './asked-request.ts';
import { ComparisonFormulas, isListOfBody, isListOfCaller } from './comparing.ts';
import { all, atom, CUT, constantly, type Formula, later, NO, someOf, YES } from './formula.ts';
import {
  type CountedQuestion,
  type ElementsQuestion,
  IS_NOT_TRUE,
  IS_TRUE,
  type Names,
  type PathStart,
  type Paths,
  type Proposition,
  type TermWalk,
  type Walk,
} from './questions.ts';
import { elementsOf, type Rows } from './rows.ts';
import { type RowVariable, rootOf, rowRoot, type StoredRow, type Term, WrittenVariables } from './variables.ts';

type Meets = (row: StoredRow) => Formula;

/** A count is compared with at most so many elements. */
const MOST_COUNTED_ELEMENTS = 4;
export class Translation implements Paths {
  readonly rows: Rows;
  readonly asked: Asked;
  readonly #comparing: ComparisonFormulas;

  constructor(rows: Rows, asked: Asked) {
    this.rows = rows;
    this.asked = asked;
    this.#comparing = new ComparisonFormulas(this);
  }

  formula(node: Checked, names: Names, question: Proposition): Formula {
    const { truth, isOpposite } = question;
    switch (node.kind) {
      case 'const':
        return constantly((node.value === truth) !== isOpposite);
      case 'not':
        return this.formula(node.item, names, { truth: !truth, isOpposite });
      case 'and':
      case 'or': {
        const items = node.items.map((item) => this.formula(item, names, question));
        return ((node.kind === 'and') === truth) !== isOpposite ? all(items) : someOf(items);
      }
      case 'is null':
        return this.#isNull(node, names, (node.negated === truth) !== isOpposite);
      case 'changed':
        return this.#changed(node.members, names, (node.unchanged !== truth) !== isOpposite);
      case 'quantified':
        return this.#quantified(node, names, question);
      case 'compare':
        return this.#comparing.formula(node, names, question);
    }
  }

  /** A test of which nothing is known but that it has one value for the same rows. */
  opaque(node: Checked, names: Names, { truth, isOpposite }: Proposition): Formula {
    const about = this.keyOf(node, names);
    const [key, twin] = [`opaque ${truth} ${about}`, `opaque ${!truth} ${about}`];
    return atom(() => this.rows.fact(key, !isOpposite) && (isOpposite || this.rows.fact(twin, false)));
  }

  /** The same text about the same rows has one key. */
  keyOf(node: object, names: Names): string {
    const text = JSON.stringify(node, (key, value: unknown) => (key === 'span' ? undefined : value));
    const bound = [...names.variables.keys()].filter((name) => text.includes(JSON.stringify(name)));
    const rows = [names.record, names.next, ...bound.map((name) => names.variables.get(name)!)];
    return `${rows.map((row) => this.#number(row)).join()} ${text}`;
  }

  readonly #numbers = new WeakMap<RowVariable, number>();
  #numbered = 0;

  #number(row: RowVariable): number {
    const root = rowRoot(row);
    if (!this.#numbers.has(root)) this.#numbers.set(root, this.#numbered++);
    return this.#numbers.get(root)!;
  }

  // -------------------------------------------------------------- paths

  /** The row of a scope; `absent` where there is none. `isRead`: more than its id. */
  start(scope: RowScope, names: Names, walk: Walk): Formula {
    switch (scope.kind) {
      case 'record':
        return walk.then(names.record);
      case 'next':
        return walk.then(names.next);
      case 'variable':
        return walk.then(names.variables.get(scope.name)!);
      case 'request':
        return this.#requested(scope.operand, walk);
    }
  }

  #requested(operand: RequestOperand, { then, absent, isRead }: Walk): Formula {
    // The id of a key is not a user's.
    if (this.asked.standing.caller.kind === 'key' && isOfCaller(operand)) return absent;
    const id = this.asked.term(operand);
    if (id === undefined) return CUT;
    const found = later(() => {
      const row = this.rows.rowOf(id);
      return isRead ? this.#ifStored(row, { then, absent }) : then(row);
    });
    return this.ifPresent(id, found, absent);
  }

  #ifStored(row: StoredRow, { then, absent }: Pick<Walk, 'then' | 'absent'>): Formula {
    if (row.isStored === true) return then(row);
    const isStored = all([atom(() => this.rows.mustBeStored(row)), later(() => then(row))]);
    return absent === NO ? isStored : someOf([isStored, all([atom(() => this.rows.mustNotBeStored(row)), absent])]);
  }

  /** The record that a row refers to; `absent` also where it is gone. */
  #referred(from: RowVariable, relation: CatalogBelongsTo | HasOne, { then, absent }: Pick<Walk, 'then' | 'absent'>) {
    const term = this.rows.column(from, relation.name)!;
    const found = (isThere: (row: StoredRow) => Formula): Formula =>
      this.ifPresent(
        term,
        later(() => isThere(this.rows.rowOf(term))),
        absent,
      );
    if (relation.kind === 'has_one') return this.#isDeleted(from) ? this.#ofDeleted(relation, absent) : found(then);
    if (relation.mayBeLost !== true) return found(then);
    // A write sets no reference to a record that does not exist, and may leave one that is gone.
    const isWritten = from instanceof WrittenVariables;
    const isNew = isWritten && this.asked.standing.action === 'create';
    const gone = isNew ? NO : isWritten && absent !== NO ? CUT : absent;
    return found((row) => this.#ifStored(row, { then, absent: gone }));
  }

  #isDeleted({ collection }: RowVariable): boolean {
    return livingName(collection) !== collection;
  }

  /** Records refer to a deleted one only where no foreign key ensures their reference. */
  #ofDeleted({ collection, via }: Pick<HasOne, 'collection' | 'via'>, none: Formula): Formula {
    const reference = this.rows.catalog.collections.get(collection)!.relations.get(via) as CatalogBelongsTo;
    return reference.mayBeLost === true ? CUT : none;
  }

  ifPresent(term: Term, present: Formula, absent: Formula): Formula {
    const known = rootOf(term).isPresent;
    if (known !== undefined) return known ? present : absent;
    const found = all([this.rows.presence(term), present]);
    return absent === NO ? found : someOf([all([this.rows.absence(term), absent]), found]);
  }

  walk(from: PathStart, names: Names, walk: Walk): Formula {
    const isRead = walk.isRead || from.steps.length > 0;
    return this.start(from.scope, names, { ...walk, isRead, then: (row) => this.#step(row, from.steps, walk) });
  }

  #step(row: RowVariable, steps: readonly ToOneStep[], walk: Walk): Formula {
    const [first, ...rest] = steps;
    if (first === undefined) return walk.then(row);
    const { absent } = walk;
    return this.#referred(row, first.relation, { then: (next) => this.#step(next, rest, walk), absent });
  }

  /** The term of a column, whether or not it is present. */
  column(operand: ColumnOperand, names: Names, walk: TermWalk): Formula {
    const name = operand.column.kind === 'id' ? 'id' : memberName(operand.column);
    const then = (row: RowVariable): Formula => {
      // A living record can have the id of a deleted one.
      const term = name === 'id' && this.#isDeleted(row) ? undefined : this.rows.column(row, name);
      return term === undefined ? walk.opaque() : walk.then(term);
    };
    return this.walk(operand, names, { then, absent: walk.absent, isRead: name !== 'id' });
  }

  #isNull(node: Extract<Checked, { kind: 'is null' }>, names: Names, wantsPresent: boolean): Formula {
    const { operand } = node;
    const question = { truth: node.negated === wantsPresent, isOpposite: false };
    const opaque = (): Formula => this.opaque(node, names, question);
    const test = (term: Term): Formula => (wantsPresent ? this.rows.presence(term) : this.rows.absence(term));
    const absent = constantly(!wantsPresent);
    if (operand.kind === 'column') return this.column(operand, names, { then: test, absent, opaque });
    if (operand.kind !== 'request') return constantly(wantsPresent);
    if (operand.list && !isListOfCaller(operand) && !isListOfBody(operand))
      return this.#comparing.listPresence(operand, wantsPresent);
    const term = isListOfBody(operand) ? this.asked.bodyList(operand) : this.asked.term(operand);
    return term === undefined ? opaque() : test(term);
  }

  // -------------------------------------------------------------- to-many relations

  #quantified(node: CheckedQuantified, names: Names, question: Proposition): Formula {
    const { quantifier, path, variable, condition } = node;
    const isNone = quantifier === 'none';
    const asked = { ...question, truth: question.truth !== isNone };
    const isSome = ((quantifier === 'all') !== asked.truth) !== question.isOpposite;
    const meets: Meets = (row) =>
      this.formula(condition, { ...names, variables: new Map(names.variables).set(variable, row) }, asked);
    const absent = constantly(question.isOpposite);
    const then = (owner: RowVariable): Formula => {
      if (path.relation.kind === 'ancestors') return this.#chain(owner as StoredRow, meets, { path, question, isSome });
      return isSome ? this.someElement({ path, owner }, meets) : this.everyElement({ path, owner }, meets);
    };
    return this.owner(path, names, { then, absent });
  }

  /** The row that has the elements; `absent` also where its list is null. */
  owner(path: ToManyPath, names: Names, { then, absent }: Omit<Walk, 'isRead'>): Formula {
    const { kind, name } = path.relation;
    if (kind !== 'elements') return this.walk(path, names, { then, absent, isRead: kind === 'ancestors' });
    const ofList = (row: RowVariable): Formula => this.ifPresent(this.rows.column(row, name)!, then(row), absent);
    return this.walk(path, names, { then: ofList, absent, isRead: true });
  }

  #collectionOf({ relation, from }: ToManyPath): string {
    return relation.kind === 'elements' ? elementsOf(from, relation.name) : relation.collection;
  }

  #makeElement(path: ToManyPath): StoredRow {
    const { relation } = path;
    const collection = this.#collectionOf(path);
    if (relation.kind !== 'elements') return this.rows.make(collection);
    return this.rows.makeElement(collection, elementOf(relation.field.type)!);
  }

  /** That the row is an element. */
  isElement({ path, owner }: ElementsQuestion, row: StoredRow): Formula {
    const { relation } = path;
    if (relation.kind === 'elements') {
      const list = this.rows.column(owner, relation.name)!;
      return atom(() => this.rows.addElement(list, row));
    }
    if (relation.kind === 'many_to_many') return this.rows.isLinked(relation, owner, row);
    const referring = relation as Exclude<typeof relation, AncestorRelation>;
    if (this.#isDeleted(owner)) return this.#ofDeleted(referring, NO);
    const via = this.rows.column(row, referring.via)!;
    return atom(() => this.rows.mustBeStored(row) && this.#refersTo(via, owner));
  }

  /** A reference leads to a stored record, which a new one is not. */
  #refersTo(via: Term, owner: RowVariable): boolean {
    return this.rows.terms.same(via, owner.id);
  }

  /** It is known that the row is an element. */
  #isKnownElement({ path, owner }: ElementsQuestion, row: StoredRow): boolean {
    const { relation } = path;
    if (relation.kind === 'elements') return this.rows.isElementOf(this.rows.column(owner, relation.name)!, row);
    if (relation.kind === 'many_to_many')
      return this.rows.linkOf({ relation: relation.linkTable, owner, element: row }) === true;
    return this.rows.refersTo(this.rows.column(row, (relation as { readonly via: string }).via)!, owner);
  }

  someElement(elements: ElementsQuestion, meets: Meets): Formula {
    return later(() => {
      const row = this.#makeElement(elements.path);
      return all([this.isElement(elements, row), meets(row)]);
    });
  }

  everyElement(elements: ElementsQuestion, meets: Meets): Formula {
    const applies = (row: StoredRow): boolean => this.#isKnownElement(elements, row);
    return { kind: 'every', collection: this.#collectionOf(elements.path), applies, each: meets };
  }

  // -------------------------------------------------------------- ancestors

  #chain(start: StoredRow, meets: Meets, { path, question, isSome }: Climb): Formula {
    const { via } = path.relation as AncestorRelation;
    // Behind the last ancestor that counts, a test of any or all of them is unknown. All can also hold on a chain that closes.
    const beyond = isSome ? NO : question.isOpposite ? YES : CUT;
    const climb = { via, meets, isSome, beyond };
    const parts = this.#climb(start, climb, []);
    return isSome === question.isOpposite ? this.withinChain({ path, owner: start }, parts, question) : parts;
  }

  /** Ancestors beyond the last that counts make a test of all of them unknown. */
  withinChain({ path, owner }: ElementsQuestion, test: Formula, { isOpposite }: Proposition): Formula {
    const { name } = (path.relation as AncestorRelation).via;
    const beyond = `beyond ${name} ${this.#number(owner)}`;
    const goesOn = atom(() => this.rows.fact(beyond, isOpposite));
    return isOpposite ? someOf([test, goesOn]) : all([test, goesOn]);
  }

  #climb(row: RowVariable, climb: Climbing, met: readonly StoredRow[]): Formula {
    const { via, meets, isSome, beyond } = climb;
    const root = rowRoot(row) as StoredRow;
    if (met.includes(root)) return constantly(!isSome);
    if (met.length >= MOST_ANCESTORS) return beyond;
    const above = this.rows.column(root, via.name)!;
    const climbed = (next: StoredRow): Formula => later(() => this.#climb(next, climb, [...met, root]));
    // All that go on is given up in the end, so that two ways to close are enough: at the last record, and at the first.
    const closed = (next: StoredRow): Formula => this.#closed(above, [root, ...met.slice(0, 1)], climbed(next));
    const rest = this.#referred(root, via, {
      then: (next) => (isSome ? climbed : closed)(next as StoredRow),
      absent: constantly(!isSome),
    });
    return isSome ? someOf([meets(root), rest]) : all([meets(root), rest]);
  }

  /** The chain meets one of its own records, or goes on. */
  #closed(above: Term, met: readonly StoredRow[], next: Formula): Formula {
    return someOf([...met.map((row) => atom(() => this.rows.terms.same(above, row.id))), next]);
  }

  // -------------------------------------------------------------- counts

  /** That at least so many elements meet the condition, or fewer. */
  counted(count: CountOperand, elements: ElementsQuestion, names: Names): CountedQuestion {
    const meets =
      (question: Proposition): Meets =>
      (row) =>
        this.formula(
          count.condition,
          { ...names, variables: new Map(names.variables).set(count.variable, row) },
          question,
        );
    if (elements.path.relation.kind === 'ancestors') return this.#countedChain(elements, meets);
    return {
      atLeast: (least) => this.#atLeast(elements, meets(IS_TRUE), least),
      fewerThan: (most) => this.#fewerThan(elements, meets(IS_NOT_TRUE), most),
    };
  }

  #countedChain({ path, owner }: ElementsQuestion, meets: (question: Proposition) => Meets): CountedQuestion {
    const { via } = path.relation as AncestorRelation;
    const climb = { via, isTrue: meets(IS_TRUE), isNotTrue: meets(IS_NOT_TRUE) };
    const start = owner as StoredRow;
    return {
      atLeast: (least) => this.#chainOf(start, climb, { least, met: [] }),
      fewerThan: (most) => this.#shortChainOf(start, climb, { least: most, met: [] }),
    };
  }

  #chainOf(row: StoredRow, climb: CountedClimb, { least, met }: Climbed): Formula {
    const root = rowRoot(row);
    if (least <= 0) return YES;
    if (met.includes(root) || least > MOST_ANCESTORS - met.length) return NO;
    const path = [...met, root];
    const climbed = (next: StoredRow, left: number): Formula => {
      const isNew = atom(() => path.every((row) => this.rows.separate(next, row)));
      return all([isNew, later(() => this.#chainOf(next, climb, { least: left, met: path }))]);
    };
    const next = (left: number): Formula =>
      left <= 0
        ? YES
        : this.#referred(root, climb.via, { then: (above) => climbed(above as StoredRow, left), absent: NO });
    return someOf([all([climb.isTrue(root), next(least - 1)]), next(least)]);
  }

  #shortChainOf(row: StoredRow, climb: CountedClimb, { least: most, met }: Climbed): Formula {
    const root = rowRoot(row);
    if (most <= 0) return NO;
    if (met.includes(root) || most > MOST_ANCESTORS - met.length) return YES;
    const above = this.rows.column(root, climb.via.name)!;
    const next = (left: number): Formula => {
      if (left <= 0) return NO;
      const path = [...met, root];
      const climbed = (next: StoredRow): Formula =>
        later(() => this.#shortChainOf(next, climb, { least: left, met: path }));
      // INVARIANT: each way to close is a branch. A row that may be one of the path counts as a further one.
      const then = (next: RowVariable): Formula => this.#closed(above, path, climbed(next as StoredRow));
      return this.#referred(root, climb.via, { then, absent: YES });
    };
    return someOf([all([climb.isNotTrue(root), next(most)]), next(most - 1)]);
  }

  #atLeast(elements: ElementsQuestion, meets: Meets, least: number): Formula {
    if (least <= 0) return YES;
    if (least > MOST_COUNTED_ELEMENTS) return CUT;
    return later(() => {
      const rows = Array.from({ length: least }, () => this.#makeElement(elements.path));
      const distinct = rows.flatMap((row, i) =>
        rows.slice(i + 1).map((other) => atom(() => this.rows.separate(row, other))),
      );
      return all([...distinct, ...rows.flatMap((row) => [this.isElement(elements, row), meets(row)])]);
    });
  }

  #fewerThan(elements: ElementsQuestion, fails: Meets, most: number): Formula {
    if (most <= 0) return NO;
    const each = (row: StoredRow, before: readonly StoredRow[]): Formula =>
      all(
        subsetsOf(before, most - 1).map((others) => {
          const rows = [row, ...others];
          const equal = rows.flatMap((one, i) =>
            rows.slice(i + 1).map((other) => atom(() => this.rows.merge(one, other))),
          );
          return someOf([...rows.map((one) => later(() => fails(one))), ...equal]);
        }),
      );
    const applies = (row: StoredRow): boolean => this.#isKnownElement(elements, row);
    return { kind: 'every', collection: this.#collectionOf(elements.path), applies, each };
  }

  // -------------------------------------------------------------- changes

  #changed(members: readonly Member[], { record, next }: Names, isChanged: boolean): Formula {
    const parts = members.flatMap(partsOfMember).map((member) => {
      const name = memberName(member);
      if (member.kind === 'relation' && member.relation.kind === 'many_to_many')
        return this.#membersDiffer(member.relation, { record, next }, isChanged);
      const [before, after] = [this.rows.column(record, name), this.rows.column(next, name)];
      if (before === undefined || after === undefined) return atom(() => this.rows.fact(`same ${name}`, !isChanged));
      if (isChanged && before.domain.kind === 'list')
        return this.#listsDiffer(before, after, elementsOf(record.collection, name));
      return isChanged ? this.#differ(before, after) : atom(() => this.rows.terms.agree(before, after));
    });
    return isChanged ? someOf(parts) : all(parts);
  }

  #differ(before: Term, after: Term): Formula {
    const { rows } = this;
    return someOf([
      all([rows.absence(before), rows.presence(after)]),
      all([rows.presence(before), rows.absence(after)]),
      atom(() => rows.terms.differ(before, after)),
    ]);
  }

  /** The lists differ by an element, or in another way, such as the order. */
  #listsDiffer(before: Term, after: Term, collection: string): Formula {
    const { rows } = this;
    const type = elementOf(before.domain.type)!;
    const more = (list: Term): Formula =>
      later(() => {
        const row = rows.makeElement(collection, type);
        return atom(() => rows.addElement(list, row) && rows.terms.differ(before, after));
      });
    return someOf([more(after), more(before), this.#differ(before, after)]);
  }

  #membersDiffer(
    relation: Extract<Member, { kind: 'relation' }>['relation'] & { readonly kind: 'many_to_many' },
    { record, next }: Pick<Names, 'record' | 'next'>,
    isChanged: boolean,
  ): Formula {
    const { rows } = this;
    const { collection } = relation;
    const inOne = (row: StoredRow, one: RowVariable, other: RowVariable): Formula =>
      all([rows.isLinked(relation, one, row), rows.isNotLinked(relation, other, row)]);
    if (isChanged)
      return later(() => {
        const row = rows.make(collection);
        return someOf([inOne(row, record, next), inOne(row, next, record)]);
      });
    const linkOf = (owner: RowVariable, element: StoredRow) =>
      rows.linkOf({ relation: relation.linkTable, owner, element });
    const applies = (row: StoredRow): boolean => linkOf(record, row) !== linkOf(next, row);
    const each = (row: StoredRow): Formula => {
      const isLinked = linkOf(record, row) ?? linkOf(next, row)!;
      const link = { relation: relation.linkTable, element: row, isLinked };
      return atom(() => [record, next].every((owner) => rows.link({ ...link, owner })));
    };
    return { kind: 'every', collection, applies, each };
  }
}

/** A json field and its parts. */
function partsOfMember(member: Member): readonly Member[] {
  if (member.kind !== 'field') return [member];
  const parts = [...(member.field.paths?.values() ?? [])];
  return [member, ...parts.map((field): Member => ({ kind: 'field', field }))];
}

interface Climb {
  readonly path: ToManyPath;
  readonly question: Proposition;
  readonly isSome: boolean;
}
interface CountedClimb {
  readonly via: CatalogBelongsTo;
  readonly isTrue: Meets;
  readonly isNotTrue: Meets;
}
interface Climbed {
  readonly least: number;
  readonly met: readonly StoredRow[];
}
interface Climbing {
  readonly beyond: Formula;
  readonly via: CatalogBelongsTo;
  readonly meets: Meets;
  readonly isSome: boolean;
}

function subsetsOf<T>(items: readonly T[], size: number): readonly (readonly T[])[] {
  if (size === 0) return [[]];
  return items.flatMap((item, i) => subsetsOf(items.slice(i + 1), size - 1).map((rest) => [item, ...rest]));
}
