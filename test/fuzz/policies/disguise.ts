/** The same policy under other names: `owner_id` for `owner`, other variables, and parts moved to named conditions with parameters. */
import type { Call, Compare, Elements, Expr, Name, Operand, Path } from '../../../grammar/syntax.ts';
import { elementOf } from '../../../src/policy/scalar-types.ts';
import { type CatalogCollection, type CatalogRelation, idOf, type ValueType } from '../../../src/policy/types.ts';
import type { Random } from '../random.ts';
import { type Setting, SPAN } from './policies.ts';

export interface DisguisedCondition {
  readonly name: string;
  readonly parameters: readonly { readonly name: string; readonly type: ValueType }[];
  readonly expr: Expr;
}
export interface Disguised {
  readonly expr: Expr;
  /** Each may call those before it. */
  readonly conditions: readonly DisguisedCondition[];
}
type Variables = ReadonlyMap<string, { readonly as: string; readonly collection: string }>;

const VARIABLES = [
  'm',
  'x',
  'y',
  'record',
  'request',
  'next',
  'now',
  '__proto__',
  'constructor',
  'toString',
  '_',
  'and_',
  'id',
  'title',
  'users',
  'mm',
];
const CONDITIONS = ['is_it', 'named', 'counts', 'constructor', 'anyone', 'toString', '__proto__', 'nested', 'allow'];
const MOST_NAMES = 6;
const name = (text: string): Name => ({ name: text, span: SPAN });

export function disguise(expr: Expr, setting: Setting, random: Random): Disguised {
  const disguiser = new Disguiser(setting, random);
  const made = disguiser.expr(expr, new Map());
  return { expr: made, conditions: disguiser.conditions };
}

class Disguiser {
  readonly conditions: DisguisedCondition[] = [];
  readonly #setting: Setting;
  readonly #random: Random;
  readonly #aliases: number;
  readonly #renames: boolean;
  readonly #extracts: number;

  constructor(setting: Setting, random: Random) {
    this.#setting = setting;
    this.#random = random;
    this.#aliases = random.pick([0, 0.3, 0.7]);
    this.#renames = random.chance(0.5);
    this.#extracts = random.pick([0, 0, 0.15, 0.3]);
  }

  expr(expr: Expr, variables: Variables): Expr {
    if (this.conditions.length < 3 && this.#random.chance(this.#extracts)) {
      const call = this.#extracted(expr, variables);
      if (call) return call;
    }
    switch (expr.kind) {
      case 'and':
      case 'or':
        return { ...expr, items: expr.items.map((item) => this.expr(item, variables)) };
      case 'not':
        return { ...expr, item: this.expr(expr.item, variables) };
      case 'compare':
        return { ...expr, left: this.#operand(expr.left, variables), right: this.#operand(expr.right, variables) };
      case 'is null':
      case 'truth':
        return { ...expr, operand: this.#operand(expr.operand, variables) };
      case 'quantified': {
        const [variable, inner] = this.#bind(expr.variable, expr.path, variables);
        return {
          ...expr,
          path: this.#elements(expr.path, variables),
          variable,
          condition: this.expr(expr.condition, inner),
        };
      }
      case 'call':
        return { ...expr, args: expr.args.map((arg) => this.#operand(arg, variables)) };
    }
  }

  #operand(operand: Operand, variables: Variables): Operand {
    if (operand.kind === 'path') return this.#path(operand, variables);
    if (operand.kind !== 'count') return operand;
    const path = this.#elements(operand.path, variables);
    if (operand.variable === undefined || operand.condition === undefined) return { ...operand, path };
    const [variable, inner] = this.#bind(operand.variable, operand.path, variables);
    return { ...operand, path, variable, condition: this.expr(operand.condition, inner) };
  }

  #elements(elements: Elements, variables: Variables): Elements {
    if (elements.kind === 'path') return this.#path(elements, variables);
    return { ...elements, path: this.#path(elements.path, variables) };
  }

  #bind(variable: Name, elements: Elements, variables: Variables): readonly [Name, Variables] {
    const taken = new Set([...variables.values()].map(({ as }) => as));
    const free = VARIABLES.filter((each) => !taken.has(each));
    const as = this.#renames || taken.has(variable.name) ? this.#random.pick(free) : variable.name;
    const isOfList = elements.kind === 'path' && this.#typeOf(elements, variables) !== undefined;
    // The elements of a list are no records.
    const collection = isOfList
      ? ''
      : this.#collectionAt(elements.kind === 'path' ? elements : elements.path, variables);
    return [name(as), new Map(variables).set(variable.name, { as, collection })];
  }

  #path(path: Path, variables: Variables): Path {
    const steps = this.#walk(path, variables).map(({ relation, step }) => {
      const isAlias = relation?.kind === 'belongs_to' && this.#random.chance(this.#aliases);
      return isAlias ? name(`${relation.name}_id`) : step;
    });
    const variable = path.variable && name(variables.get(path.variable.name)!.as);
    return { ...path, ...(variable && { variable }), steps };
  }

  // -------------------------------------------------------------- what a path names

  #collectionOf({ root, variable }: Path, variables: Variables): CatalogCollection | undefined {
    const { catalog, collection } = this.#setting;
    if (root === 'query' || isFactRoot(root)) return undefined;
    if (root === 'auth') return catalog.collections.get('users');
    return catalog.collections.get(root === 'variable' ? variables.get(variable!.name)!.collection : collection);
  }

  /**
   * The collection of the records that a path reaches; a path ends with a relation, an `id`, or is
   * a variable alone.
   */
  #collectionAt(path: Path, variables: Variables): string {
    const last = this.#walk(path, variables).at(-1);
    if (last?.relation !== undefined) return last.relation.collection;
    return (last === undefined ? this.#collectionOf(path, variables) : last.from)!.name;
  }

  #walk(path: Path, variables: Variables): readonly Walked[] {
    let at = this.#collectionOf(path, variables);
    return path.steps.map((step) => {
      const found = step.name === 'id' || at?.fields.has(step.name) ? undefined : at?.relations.get(step.name);
      const relation = found ?? at?.relations.get(step.name.replace(/_id$/, ''));
      const from = at;
      at = relation && this.#setting.catalog.collections.get(relation.collection);
      return { step, from, relation };
    });
  }

  // -------------------------------------------------------------- named conditions

  /** A part of the policy becomes the body of a condition; what it knows of records becomes arguments. */
  #extracted(expr: Expr, variables: Variables): Call | undefined {
    const taken = new Set(this.conditions.map((condition) => condition.name));
    const extraction = new Extraction({
      cut: (path) => this.#parameterOf(path, variables),
      // `@now` is in few policies.
      given: (operand, other) =>
        this.#random.chance(operand.kind === 'now' ? 0.9 : 0.4) ? this.#givenAs(operand, other, variables) : undefined,
    });
    const body = extraction.expr(expr, new Set());
    if (body === undefined) return undefined;
    const { parameters } = extraction;
    // A variable that a body binds must not have the name of a parameter.
    const inner = new Map(parameters.map(({ name: own, collection }) => [own, { as: own, collection }]));
    const made = new Disguiser(this.#setting, this.#random);
    made.conditions.push(...this.conditions);
    const own = this.#random.pick(CONDITIONS.filter((each) => !taken.has(each)));
    const checked = made.expr(body, inner);
    this.conditions.splice(0, Number.POSITIVE_INFINITY, ...made.conditions);
    const free = this.conditions.some((condition) => condition.name === own) ? `${own}_${this.conditions.length}` : own;
    this.conditions.push({
      name: free,
      parameters: parameters.map(({ name: of, type }) => ({ name: of, type })),
      expr: checked,
    });
    const args = parameters.map(({ argument }) => this.#operand(argument, variables));
    return { kind: 'call', name: name(free), args, span: SPAN };
  }

  /** The place where a path is cut: the argument before it, the rest of the body behind it. */
  #parameterOf(path: Path, variables: Variables): Cut | undefined {
    const walked = this.#walk(path, variables);
    // A variable alone, or the record's own id, is a record.
    const cuts: Cut[] = [];
    const { catalog } = this.#setting;
    const start = this.#collectionOf(path, variables);
    if (start === undefined) return undefined;
    if (path.root === 'variable')
      cuts.push({ argument: { ...path, steps: [] }, type: idOf(catalog, start.name), rest: path.steps });
    // Its own name counts as one of the path's.
    else if (path.steps.length < MOST_NAMES)
      cuts.push({ argument: { ...path, steps: [name('id')] }, type: idOf(catalog, start.name), rest: path.steps });
    for (const [i, { relation, step, from }] of walked.entries()) {
      const argument = { ...path, steps: path.steps.slice(0, i + 1) };
      const rest = path.steps.slice(i + 1);
      const isToOne = relation?.kind === 'belongs_to' || relation?.kind === 'has_one';
      if (isToOne) cuts.push({ argument, type: idOf(catalog, relation.collection), rest });
      const type = step.name === 'id' ? idOf(catalog, from!.name) : from?.fields.get(step.name)?.type;
      // No parameter is a list, and none is followed by a path into json.
      const isValue = type !== undefined && elementOf(type) === undefined && (type !== 'json' || rest.length === 0);
      if (isValue) cuts.push({ argument, type, rest });
    }
    return cuts.length === 0 ? undefined : this.#random.pick(cuts);
  }

  /** A literal, a query parameter, `@now` or a value of the caller as an argument of the type that it is read as. */
  #givenAs(operand: Operand, other: Operand, variables: Variables): ValueType | undefined {
    const type = this.#typeOf(other, variables);
    if (type === undefined) return undefined;
    switch (operand.kind) {
      case 'path':
        return operand.root === 'query' ? type : undefined;
      case 'number':
        if (type === 'bigint' || type === 'decimal') return type;
        if (type !== 'int' && type !== 'float') return undefined;
        // A whole number that no double holds is a float.
        return type === 'int' && /^-?\d{1,15}$/.test(operand.source) ? 'int' : 'float';
      case 'now':
        return type === (operand.isDay ? 'date' : 'datetime') ? type : undefined;
      case 'text':
        return WRITTEN_AS_TEXT.some((each) => each === type) ? type : undefined;
      case 'bool':
        return type === 'bool' ? type : undefined;
      default:
        return undefined;
    }
  }

  /** The type of a path of a record; else undefined. */
  #typeOf(operand: Operand, variables: Variables): ValueType | undefined {
    if (operand.kind !== 'path' || operand.root === 'auth' || operand.root === 'query' || isFactRoot(operand.root))
      return undefined;
    const last = this.#walk(operand, variables).at(-1);
    const field = last?.from?.fields.get(last.step.name);
    return field && (elementOf(field.type) ?? field.type);
  }
}

/** Types whose literals are strings. */
const WRITTEN_AS_TEXT: readonly ValueType[] = ['string', 'datetime', 'date', 'time', 'uuid', 'bytes'];

interface Walked {
  readonly step: Name;
  readonly from: CatalogCollection | undefined;
  readonly relation: CatalogRelation | undefined;
}
interface Cut {
  readonly argument: Operand;
  readonly type: ValueType;
  readonly rest: readonly Name[];
}
interface Parameter {
  readonly name: string;
  readonly type: ValueType;
  /** The collection of a parameter that is a record; else empty. */
  readonly collection: string;
  readonly argument: Operand;
}
interface Cutting {
  cut(path: Path): Cut | undefined;
  /** The type of the parameter for a value beside `other`; undefined where it stays in the body. */
  given(operand: Operand, other: Operand): ValueType | undefined;
}

/** A value has no copy that could be searched; a field of a record has. */
const isParameter = (operand: Operand | undefined): boolean =>
  operand?.kind === 'path' && operand.root === 'variable' && operand.steps.length === 0;

/** The body of a condition made of a part of a policy, and the arguments that make it the same again. */
class Extraction {
  readonly parameters: Parameter[] = [];
  readonly #cutting: Cutting;

  constructor(cutting: Cutting) {
    this.#cutting = cutting;
  }

  /** Undefined where a body may not say it. */
  expr(expr: Expr, bound: ReadonlySet<string>): Expr | undefined {
    switch (expr.kind) {
      case 'and':
      case 'or': {
        const items = expr.items.map((item) => this.expr(item, bound));
        return items.includes(undefined) ? undefined : { ...expr, items: items as Expr[] };
      }
      case 'not': {
        const item = this.expr(expr.item, bound);
        return item && { ...expr, item };
      }
      case 'compare': {
        if (expr.op === 'within') {
          const point = this.#operand(expr.left, bound);
          return point && { ...expr, left: point };
        }
        const left = this.#given(expr.left, expr, bound) ?? this.#operand(expr.left, bound);
        if (expr.op === 'matches' && isParameter(left)) return undefined;
        const right = this.#given(expr.right, expr, bound) ?? this.#operand(expr.right, bound);
        return left && right && { ...expr, left, right };
      }
      case 'is null':
      case 'truth': {
        const operand = this.#operand(expr.operand, bound);
        return operand && { ...expr, operand };
      }
      case 'quantified': {
        const path = this.#elements(expr.path, bound);
        const condition = path && this.expr(expr.condition, new Set(bound).add(expr.variable.name));
        return condition && { ...expr, path: path!, condition };
      }
      case 'call':
        return undefined;
    }
  }

  #operand(operand: Operand, bound: ReadonlySet<string>): Operand | undefined {
    if (operand.kind === 'path') return this.#path(operand, bound);
    if (operand.kind !== 'count') return operand;
    const path = this.#elements(operand.path, bound);
    if (path === undefined || operand.variable === undefined) return path && { ...operand, path };
    const condition = this.expr(operand.condition!, new Set(bound).add(operand.variable.name));
    return condition && { ...operand, path, condition };
  }

  #elements(elements: Elements, bound: ReadonlySet<string>): Elements | undefined {
    if (elements.kind === 'path') return this.#path(elements, bound);
    const path = this.#path(elements.path, bound);
    return path && { ...elements, path };
  }

  #given(operand: Operand, { op, left, right }: Compare, bound: ReadonlySet<string>): Path | undefined {
    const other = operand === left ? right : left;
    const isElement = op === 'in' || op === 'not in' || op === 'contains';
    const isInner = other.kind === 'path' && other.root === 'variable' && bound.has(other.variable!.name);
    if (isElement || isInner) return undefined;
    const type = this.#cutting.given(operand, other);
    return type && this.#parameter({ argument: operand, type, rest: [] });
  }

  #path(path: Path, bound: ReadonlySet<string>): Path | undefined {
    if (path.root === 'auth' || path.root === 'query' || isFactRoot(path.root)) return path;
    if (path.root === 'data') return undefined;
    if (path.root === 'variable' && bound.has(path.variable!.name)) return path;
    const cut = this.#cutting.cut(path);
    return cut && this.#parameter(cut);
  }

  #parameter({ argument, type, rest }: Cut): Path | undefined {
    if (this.parameters.length > 5) return undefined;
    const known = this.parameters.find(
      (each) => JSON.stringify([each.argument, each.type]) === JSON.stringify([argument, type]),
    );
    const made = known ?? {
      name: `p${this.parameters.length}`,
      type,
      collection: typeof type === 'object' ? type.id : '',
      argument,
    };
    if (known === undefined) this.parameters.push(made);
    return { kind: 'path', root: 'variable', variable: name(made.name), steps: rest, span: SPAN };
  }
}

const isFactRoot = (root: Path['root']): boolean => root === 'request' || root === 'now';
