/**
 * A cache of compiled filters, without the values of a request. The rules that hide records take
 * part in lowering by their verdicts alone, so callers share a condition exactly if they have the
 * same verdicts.
 */
import type { Sql } from '../../sql.ts';
import { type Pin, provenPins } from '../analyse/routing.ts';
import { enumMet } from '../check/warnings/enum-values.ts';
import {
  type FactsOf,
  factsOf,
  isBoundOf,
  isOfOneValue,
  isValueTest,
  storedValueOf,
  type ValueTest,
} from '../column-facts.ts';
import type { Condition, Exists } from '../condition.ts';
import { RECORD, STORED_ROOTS } from '../condition.ts';
import type { PrintedWhere, Values } from '../emit/value-places.ts';
import { requiredElement, whereOf } from '../emit/where.ts';
import { isOneList } from '../hoisting.ts';
import { guardLostReferences } from '../lower/lost-references.ts';
import { lower } from '../lower/lower.ts';
import { and } from '../lower/simplify.ts';
import { type Binding, type RequestPlan, requestPlanOf } from '../lower/specialise.ts';
import { OPERATORS } from '../operators.ts';
import type { Catalog, CatalogRelation, Checked, Verdict } from '../types.ts';
import type { Readable, Visibility } from '../visibility.ts';
import { comparesOf, conjunctsOf, nodesOf } from '../visit.ts';
import { type Needles, needlesOf } from './needles.ts';

const MOST_PLANS = 512;
/** The limit of all texts together, in UTF-16 units: a tree takes some twenty times as many bytes. */
const MOST_KEY_TEXT = 128 * 1024;
/** The limit of a key, twice the longest filter: unused params in keys would evict all other filters. */
const MOST_KEY = 8 * 1024;
/** The limit of a filter: kinds of requests by kinds of callers. */
const MOST_LOWERED = 8;

/** The latest filters over one catalog. Evicts the least recently used. */
export class FilterPlans {
  readonly #plans = new Map<string, FilterPlan>();
  #text = 0;

  get(key: string): FilterPlan | undefined {
    const plan = this.#plans.get(key);
    // Until half of the room is taken, the order of use does not matter.
    const hasRoom = this.#plans.size <= MOST_PLANS / 2 && this.#text <= MOST_KEY_TEXT / 2;
    if (plan === undefined || hasRoom) return plan;
    this.#plans.delete(key);
    this.#plans.set(key, plan);
    return plan;
  }

  add(key: string, plan: FilterPlan): void {
    if (key.length > MOST_KEY) return;
    this.#plans.set(key, plan);
    this.#text += key.length;
    for (const [oldest] of this.#plans) {
      if (this.#plans.size <= MOST_PLANS && this.#text <= MOST_KEY_TEXT) return;
      this.#plans.delete(oldest);
      this.#text -= oldest.length;
    }
  }
}

/** A checked filter, and its lowered conditions. */
export class FilterPlan {
  readonly plan: RequestPlan;
  readonly checked: Checked;
  readonly #catalog: Catalog;
  #enums: ReadonlyMap<string, readonly (string | number)[]> | undefined;
  #needles: Needles | undefined;
  /** The latest last. */
  readonly #lowered: LoweredFilter[] = [];

  constructor(checked: Checked, catalog: Catalog) {
    this.plan = requestPlanOf(guardLostReferences(checked, { catalog }));
    this.checked = checked;
    this.#catalog = catalog;
  }

  /** The values of the enum that the param is compared with. Undefined: any of its type. */
  enumOf(param: string): readonly (string | number)[] | undefined {
    this.#enums ??= enumsOf(this.checked);
    return this.#enums.get(param);
  }

  /** The strings that it looks for inside of others. */
  get needles(): Needles {
    this.#needles ??= needlesOf(this.checked);
    return this.#needles;
  }

  /** Values of which each is that of the belongs_to in every record that it finds. */
  pins(relation: string): readonly Pin[] {
    return provenPins(this.checked, relation);
  }

  lowered({ signature, states, decided }: Binding, visibility: Visibility): LoweredFilter {
    const known = this.#lowered.find((each) => each.signature === signature && each.isFor(visibility));
    if (known !== undefined) return known;
    const asked = new AskedVerdicts(visibility);
    const given = { catalog: this.#catalog, signature: { states, decided }, roots: STORED_ROOTS, visibility: asked };
    const made = new LoweredFilter(signature, lower(this.plan.tree, given), asked.verdicts);
    if (this.#lowered.push(made) > MOST_LOWERED) this.#lowered.shift();
    return made;
  }
}

function enumsOf(checked: Checked): ReadonlyMap<string, readonly (string | number)[]> {
  const found = new Map<string, readonly (string | number)[]>();
  for (const compare of comparesOf(checked)) {
    const values = enumMet(compare);
    const param = [compare.left, compare.right].find((side) => side.kind === 'request' && side.source === 'param');
    if (values !== undefined && param?.kind === 'request') found.set(param.name, values);
  }
  return found;
}

interface AskedVerdict {
  readonly collection: string;
  /** Undefined: the verdict is about the collection's records. */
  readonly member: string | undefined;
  readonly verdict: Verdict;
}

/** Records the verdicts that lowering reads. */
class AskedVerdicts implements Visibility {
  readonly verdicts: AskedVerdict[] = [];
  readonly #visibility: Visibility;

  constructor(visibility: Visibility) {
    this.#visibility = visibility;
  }

  records(collection: string): Readable {
    const rule = this.#visibility.records(collection);
    this.verdicts.push({ collection, member: undefined, verdict: rule.verdict });
    return rule;
  }

  member(collection: string, member: string): Readable | undefined {
    const rule = this.#visibility.member(collection, member);
    this.verdicts.push({ collection, member, verdict: verdictOfRule(rule) });
    return rule;
  }
}

/** Without a rule of its own, a member is as readable as its record. */
const verdictOfRule = (rule: Readable | undefined): Verdict => rule?.verdict ?? 'allow';

/**
 * A filter that searches by an index of its own, or is one relation test; or has relation tests beside others; or tests
 * the record alone, and not for values.
 */
export type Opacity = 'search' | 'related' | 'mixed' | 'own';

function opacityOf(cond: Condition): Opacity | undefined {
  if (cond.kind === 'exists') return isOneList(cond) ? 'related' : 'mixed';
  if (conjunctsOf(cond).some((part) => part.kind === 'test' && OPERATORS[part.op].sides === 'search')) return 'search';
  const isOfValues = cond.kind === 'const' || conjunctsOf(cond).every((part) => isValueTest(part));
  if (isOfValues) return undefined;
  return nodesOf(cond).some(({ kind }) => kind === 'exists') ? 'mixed' : 'own';
}

/**
 * A filter looks up the related rows of each row, or finds them as PostgreSQL chooses. Not given: it has lists of keys, which
 * are found first.
 */
export type RelatedRows = 'looked up' | 'as planned';

interface PrintedFilter {
  readonly alias: string;
  readonly visibility: Visibility;
  readonly inTime: Sql | undefined;
  /** A column. */
  readonly range?: string | undefined;
  readonly byKeys?: 'list' | 'test' | undefined;
  readonly relatedRows?: RelatedRows | undefined;
}
export const NO_LISTS: ReadonlySet<Exists> = new Set();

type LinkTestCondition = Exists & { readonly relation: CatalogRelation; readonly condition: ValueTest };

/** The record has a link to the one that the caller names by its id. */
function isLinkTest(part: Condition): part is LinkTestCondition {
  if (part.kind !== 'exists' || part.negated || part.by !== 'owner' || part.relation.kind !== 'many_to_many')
    return false;
  const { key, guard, source, condition, colocated } = part;
  const isOfRecord = key.kind === 'column' && key.source.id === RECORD.id && colocated === undefined;
  if (!isOfRecord || guard?.via !== undefined) return false;
  return isValueTest(condition, source.id) && isOfOneValue(condition) && condition.left.name === 'id';
}

/** Process-wide: no two lowered filters have one number. */
let made = 0;

/** A conjunct that requires a link to the record of an id, and the others. */
interface LinkTest {
  readonly relation: string;
  /** The id of the linked record. Undefined: none has it. */
  readonly idIn: (values: Values) => unknown;
  /** Undefined: the filter has this conjunct alone. */
  readonly rest: LoweredFilter | undefined;
}

/** INVARIANT: depends on nothing of a caller but the verdicts. */
export class LoweredFilter {
  readonly shape = `${++made}`;
  readonly signature: Binding['signature'];
  readonly cond: Condition;
  /** It depends on nothing that the caller may not read. */
  readonly isOpen: boolean;
  readonly facts: FactsOf;
  /** The conjuncts that test a column for one value, by the column. */
  readonly tested: ReadonlyMap<string, ValueTest>;
  /** The conjuncts that test a column for the elements of a list. */
  readonly listTests: readonly ValueTest[];
  /** Undefined: the values of its columns tell how many records match. */
  readonly opacity: Opacity | undefined;
  #link: LinkTest | null | undefined;
  readonly #verdicts: readonly AskedVerdict[];
  readonly #dependsOnCaller: boolean;
  /** The key is the alias of the row, whether the tenant is a value, and the text of its time. */
  readonly #wheres = new Map<string, PrintedWhere>();

  constructor(signature: Binding['signature'], cond: Condition, verdicts: readonly AskedVerdict[]) {
    this.signature = signature;
    this.cond = cond;
    this.facts = factsOf(cond);
    const tests = conjunctsOf(cond).filter((part) => isValueTest(part));
    this.tested = new Map(tests.filter(isOfOneValue).map((test) => [test.left.column, test]));
    this.listTests = tests.filter((test) => !isOfOneValue(test));
    this.opacity = opacityOf(cond);
    this.#verdicts = verdicts;
    this.isOpen = verdicts.every(({ verdict }) => verdict === 'allow');
    this.#dependsOnCaller = verdicts.some(({ verdict }) => verdict === 'depends');
  }

  /** The first link test, which depends on no rule but that of the linked records. Undefined: it has none. */
  get link(): LinkTest | undefined {
    this.#link ??= this.#linkTest() ?? null;
    return this.#link ?? undefined;
  }

  #linkTest(): LinkTest | undefined {
    const parts = conjunctsOf(this.cond);
    const found = parts.find((part) => isLinkTest(part));
    if (found === undefined) return undefined;
    const { from, relation, condition } = found;
    const isHidden = this.#verdicts.some(
      ({ collection, member, verdict }) => collection === from && member === relation.name && verdict !== 'allow',
    );
    if (isHidden) return undefined;
    const others = parts.filter((part) => part !== found);
    const rest = others.length === 0 ? undefined : new LoweredFilter(this.signature, and(others), this.#verdicts);
    return { relation: relation.name, idIn: storedValueOf(condition), rest };
  }

  /** Returns true if lowering for this caller gives the same condition. */
  isFor(visibility: Visibility): boolean {
    return this.#verdicts.every(({ collection, member, verdict }) => {
      const rule = member === undefined ? visibility.records(collection) : visibility.member(collection, member);
      return verdictOfRule(rule) === verdict;
    });
  }

  /** A test may be printed as a range, and a relation test as a list of keys. */
  #printed({ alias, visibility, inTime, range, byKeys, relatedRows }: PrintedFilter): PrintedWhere {
    const keyed = byKeys && this.cond.kind === 'exists' ? { test: this.cond, part: byKeys } : undefined;
    const test = range === undefined ? undefined : this.tested.get(range);
    const listed = relatedRows && NO_LISTS;
    const hashed = relatedRows === 'as planned' ? NO_LISTS : undefined;
    const hasTenant = visibility.tenant !== undefined;
    const how = { range: test, keyed, listed, hashed };
    return whereOf(this.cond, { alias, visibility, inTime, inUnion: false, hasTenant, ...how });
  }

  /** The conditions without a column of the record that its conjuncts require. */
  firsts(alias: string, visibility: Visibility): readonly PrintedWhere[] {
    const hasTenant = visibility.tenant !== undefined;
    const printing = { alias, inUnion: false, visibility, hasTenant };
    return conjunctsOf(this.cond).flatMap((part) => requiredElement(part, printing) ?? []);
  }

  /** The test of the column for one value, as a range. */
  range(alias: string, column: string, visibility: Visibility): PrintedWhere {
    const test = this.tested.get(column)!;
    return whereOf(test, { alias, inUnion: false, visibility, inTime: undefined, range: test });
  }

  isBoundOn(column: string): boolean {
    return conjunctsOf(this.cond).some((part) => isBoundOf(part, column));
  }

  /** The conjuncts between whose values a column lies. */
  bounds(alias: string, column: string, visibility: Visibility): readonly PrintedWhere[] {
    return conjunctsOf(this.cond).flatMap((part) =>
      isBoundOf(part, column) ? [whereOf(part, { alias, inUnion: false, visibility })] : [],
    );
  }

  /** A text that contains the caller's rules is printed each time, and so is an unusual one. */
  where(printed: PrintedFilter): PrintedWhere {
    const { alias, visibility, inTime, range, byKeys, relatedRows } = printed;
    const isUsual = range === undefined && byKeys === undefined && relatedRows === undefined;
    if (this.#dependsOnCaller || !isUsual) return this.#printed(printed);
    const key = `${alias} ${visibility.tenant !== undefined} ${inTime === undefined ? '' : inTime.text}`;
    const known = this.#wheres.get(key) ?? this.#printed(printed);
    if (this.#wheres.size < MOST_LOWERED) this.#wheres.set(key, known);
    return known;
  }
}
