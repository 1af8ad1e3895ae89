/** The request of a world that is being looked for: its caller, its query and its body. */
import { GUEST, GUEST_ROW } from '../../check/guests.ts';
import { type CatalogField, type RequestOperand, SESSION_FACTS, STAMPS } from '../../types.ts';
import { FactTerms } from './fact-terms.ts';
import { all, atom, constantly, type Formula, later, someOf } from './formula.ts';
import type { Rows } from './rows.ts';
import type { Standing } from './standing.ts';
import type { StoredRow, Term, WrittenVariables } from './variables.ts';

/** A list of the query, known by what is in it. */
export interface ListVariable {
  readonly key: string;
  readonly operand: RequestOperand;
  members: Term[];
  others: Term[];
}
export interface QueryView {
  readonly operand: RequestOperand;
  readonly term: Term;
}
/** The records that a request is about. */
export interface Subject {
  /** Undefined for a create. */
  readonly stored: StoredRow | undefined;
  readonly written: WrittenVariables | undefined;
}

/** The facts that mark a guest, or a user who was one: unlike the others, they may be absent. */
const MARKS_OF_GUESTS: ReadonlySet<string> = new Set([GUEST, 'former_guest']);

export class Asked {
  readonly standing: Standing;
  readonly subject: Subject;
  readonly user: StoredRow | undefined;
  readonly queries = new Map<string, QueryView>();
  readonly body = new Map<string, Term>();
  readonly lists = new Map<string, ListVariable>();
  /** Values of the caller beside the columns of users. */
  readonly extras = new Map<string, Term>();
  readonly facts: FactTerms;
  readonly #rows: Rows;

  constructor(rows: Rows, standing: Standing, subject: Subject) {
    this.#rows = rows;
    this.standing = standing;
    this.subject = subject;
    this.facts = new FactTerms(rows, standing);
    this.user =
      standing.caller.kind === 'user' && rows.catalog.collections.has('users') ? rows.make('users') : undefined;
    if (this.user !== undefined) rows.mustBeStored(this.user);
  }

  /** The facts of every world of the caller and the write. */
  axioms(): Formula {
    this.#stamp();
    return this.#rolesOfCaller();
  }

  /** Undefined: a type that is not reasoned about. */
  term(operand: RequestOperand): Term | undefined {
    switch (operand.source) {
      case 'auth':
        return this.#ofCaller(operand);
      case 'query':
        return this.#ofQuery(operand);
      case 'data':
        return this.#ofBody(operand);
      case 'fact':
        return this.facts.term(operand);
      case 'param':
        return undefined;
    }
  }

  #ofCaller(operand: RequestOperand): Term | undefined {
    const { name } = operand;
    if (this.user !== undefined) {
      const column = this.#rows.column(this.user, name);
      if (column !== undefined) return column;
    }
    return this.#kept(this.extras, name, () => this.#extra(operand));
  }

  #extra({ name, type }: RequestOperand): Term | undefined {
    const { kind } = this.standing.caller;
    if (kind === 'key') return this.#ofKey(name, type);
    const isGuest = kind === 'guest';
    const isOfSession = SESSION_FACTS.some(([fact]) => fact === name) && !MARKS_OF_GUESTS.has(name);
    const term = this.#rows.value(type, !isOfSession);
    if (term === undefined) return undefined;
    // Only a guest has `guest`, unless it is the bearer of a publishable key.
    if (isGuest !== (name === GUEST)) term.isPresent = isGuest && Object.hasOwn(GUEST_ROW, name);
    if (isOfSession && term.isPresent === true) {
      this.#rows.trail.push(
        this.#rows.axioms,
        later(() => this.#ofSession(term, isGuest)),
      );
    }
    return term;
  }

  /** A key has an id, which is not a user's, and no second factor. */
  #ofKey(name: string, type: RequestOperand['type']): Term | undefined {
    const term = this.#rows.value(type, true);
    if (term === undefined) return undefined;
    term.isPresent = name === 'id' || name === 'second_factor';
    if (name === 'id') this.#rows.mustNotBeStored(this.#rows.rowOf(term));
    if (name === 'second_factor') term.value = false;
    return term;
  }

  /** A guest has no second factor, and a sign-in is not in the future. */
  #ofSession(term: Term, isGuest: boolean): Formula {
    const { terms } = this.#rows;
    if (isGuest) return atom(() => terms.is(term, false));
    return term.domain.kind === 'truth'
      ? all([])
      : atom(() => terms.atMost(term, { value: this.standing.now, strict: false }));
  }

  #kept(map: Map<string, Term>, key: string, make: () => Term | undefined): Term | undefined {
    const known = map.get(key);
    if (known !== undefined) return known;
    const term = make();
    if (term !== undefined) this.#rows.trail.put(map, key, term);
    return term;
  }

  #ofQuery(operand: RequestOperand): Term | undefined {
    const key = `${operand.name} ${JSON.stringify(operand.type)}`;
    const known = this.queries.get(key);
    if (known !== undefined) return known.term;
    const term = this.#rows.value(operand.type, true);
    if (term !== undefined) this.#rows.trail.put(this.queries, key, { operand, term });
    return term;
  }

  list(operand: RequestOperand): ListVariable {
    const key = `${operand.source} ${operand.name} ${JSON.stringify(operand.type)}`;
    const known = this.lists.get(key);
    if (known !== undefined) return known;
    const list: ListVariable = { key, operand, members: [], others: [] };
    this.#rows.trail.put(this.lists, key, list);
    return list;
  }

  /** A list has the element, or has it not; then all its elements can be read. */
  holds(list: ListVariable, element: Term, isMember: boolean): boolean {
    const { terms, trail } = this.#rows;
    if (!terms.present(element)) return false;
    trail.push(isMember ? list.members : list.others, element);
    return (isMember ? list.others : list.members).every((other) => terms.differ(element, other));
  }

  // -------------------------------------------------------------- the body

  /** The field of the written record whose list the body holds. */
  bodyField({ name }: RequestOperand): CatalogField | undefined {
    const { written } = this.subject;
    return written && this.#rows.catalog.collections.get(written.collection)?.fields.get(name);
  }

  bodyList(operand: RequestOperand): Term | undefined {
    const field = this.bodyField(operand);
    return field && this.#ofBody({ ...operand, type: field.type, list: false });
  }

  /** A value of the body is that of the written record, and what the body leaves out stays as it is. */
  #ofBody(operand: RequestOperand): Term | undefined {
    return this.#kept(this.body, operand.name, () => {
      const term = this.#rows.value(operand.type, true);
      if (term !== undefined)
        this.#rows.trail.push(
          this.#rows.axioms,
          later(() => this.#isWritten(operand.name, term)),
        );
      return term;
    });
  }

  #isWritten(name: string, given: Term): Formula {
    const { stored, written } = this.subject;
    const column = written && this.#rows.column(written, name);
    // The service sets these itself, and takes none of the body.
    if (column === undefined || name === 'id' || STAMPS.includes(name)) return constantly(true);
    const { terms } = this.#rows;
    const isGiven = all([this.#rows.presence(given), atom(() => terms.same(given, column))]);
    const before = stored && this.#rows.column(stored, name);
    const left = before === undefined ? this.#isDefault(name, column) : atom(() => terms.agree(before, column));
    return someOf([isGiven, all([this.#rows.absence(given), someOf([this.#rows.absence(column), left])])]);
  }

  #isDefault(name: string, column: Term): Formula {
    const { fields, relations } = this.#rows.catalog.collections.get(this.subject.written!.collection)!;
    const member = (fields.get(name) ?? relations.get(name)) as { readonly default?: unknown } | undefined;
    // The default of a schema: which value it gives is not looked at.
    return member?.default === undefined ? this.#rows.absence(column) : constantly(true);
  }

  /** The times of a record are set by the service. */
  #stamp(): void {
    const { written } = this.subject;
    if (written === undefined) return;
    for (const name of STAMPS)
      this.#rows.follows({ isDue: () => written.columns.has(name), make: () => this.#stampOf(name, written) });
  }

  #stampOf(name: string, written: WrittenVariables): Formula {
    const { terms } = this.#rows;
    const { stored } = this.subject;
    const [before, after] = [stored && this.#rows.column(stored, name), this.#rows.column(written, name)];
    if (after === undefined) return all([]);
    const isNow = atom(() => terms.is(after, this.standing.now));
    if (before === undefined) return isNow;
    const isSame = atom(() => terms.agree(before, after));
    if (name !== STAMPS.at(-1)) return isSame;
    const now = { value: this.standing.now, strict: false };
    const isEarlier = atom(() => terms.atMost(before, now));
    return someOf([all([isEarlier, isNow]), all([atom(() => terms.atLeast(before, now)), isSame])]);
  }

  // -------------------------------------------------------------- roles

  get roleNames(): readonly string[] {
    const declared = [...this.standing.roles.includes.keys()].filter((name) => name !== GUEST);
    return this.standing.caller.kind === 'guest' ? [...declared, GUEST] : declared;
  }

  #rolesOfCaller(): Formula {
    const { caller, roles } = this.standing;
    if ('held' in caller) return all([this.role(caller.held, true), this.role(caller.lacked, false)]);
    const given = caller.kind === 'guest' ? [GUEST] : caller.kind === 'user' ? caller.roles : undefined;
    if (given === undefined) return all([]);
    const held = new Set(given.flatMap((name) => [name, ...(roles.includes.get(name) ?? [])]));
    return all(this.roleNames.map((name) => this.role(name, held.has(name))));
  }

  role(name: string, isHeld: boolean): Formula {
    // No user has the role of guests.
    if (name === GUEST) return constantly(isHeld === (this.standing.caller.kind === 'guest'));
    if (!this.standing.roles.includes.has(name)) return constantly(!isHeld);
    return atom(
      () => this.#setRole(name, isHeld),
      () => this.#setRole(name, !isHeld),
    );
  }

  #setRole(name: string, isHeld: boolean): boolean {
    const { includes } = this.standing.roles;
    const follows = isHeld
      ? includes.get(name)!
      : [...includes.keys()].filter((other) => includes.get(other)!.includes(name));
    return [name, ...follows].every((each) => this.#rows.fact(roleFact(each), isHeld));
  }

  isHeld(name: string): boolean {
    return this.#rows.facts.get(roleFact(name)) === true;
  }
}

const roleFact = (name: string): string => `role ${name}`;
