/** The rows of one query, and which tenant they can be of: by what its conditions require, and those of the queries around it. */
import { as, isTree, list, names, type Tree, walk } from './syntax.ts';

/** A tenant: what its column is compared with. */
export type TenantId = string;

interface Row {
  /** Undefined for a subquery. */
  readonly table: string | undefined;
  /** The scope of a subquery. */
  readonly query?: { readonly scope: Scope; readonly select: Tree };
}

/** Two operands that are equal wherever the condition holds. */
type Pair = readonly [a: unknown, b: unknown];

export class Scope {
  readonly #outer: Scope | undefined;
  /** Rows by alias. */
  readonly #rows = new Map<string, Row>();
  readonly #known = new Map<string, TenantId>();
  /** Columns of which only a row outside gives the value. */
  readonly #fromOutside = new Set<string>();
  readonly #params: readonly unknown[];

  constructor(outer: Scope | undefined, params: readonly unknown[]) {
    this.#outer = outer;
    this.#params = params;
  }

  inner(): Scope {
    return new Scope(this, this.#params);
  }

  addTable(node: Tree): void {
    const table = String(node.relname);
    this.#rows.set(isTree(node.alias) ? String(node.alias.aliasname) : table, { table });
  }

  addQuery(alias: string, scope: Scope, select: Tree): void {
    this.#rows.set(alias, { table: undefined, query: { scope, select } });
  }

  /** Aliases and their tables. */
  get tables(): readonly (readonly [alias: string, table: string])[] {
    return [...this.#rows].flatMap(([alias, { table }]) => (table === undefined ? [] : [[alias, table] as const]));
  }

  /** Takes what the conditions, all of which hold, say of the rows. */
  learn(conditions: readonly unknown[]): void {
    const pairs = conditions.flatMap(equalities);
    for (const fromOutside of [false, true]) {
      for (let grew = true; grew; ) {
        grew = false;
        for (const [a, b] of pairs)
          for (const [from, to] of [
            [a, b],
            [b, a],
          ])
            grew = this.#learnOne(from, to, fromOutside) || grew;
      }
    }
  }

  #learnOne(from: unknown, to: unknown, fromOutside: boolean): boolean {
    const place = this.#placeOf(to);
    const value = fromOutside || !this.#isOutside(from) ? this.valueOf(from) : undefined;
    if (place === undefined || value === undefined || this.#known.has(place)) return false;
    this.#known.set(place, value);
    if (fromOutside) this.#fromOutside.add(place);
    return true;
  }

  /** A column of a row of the queries around this one. */
  #isOutside(operand: unknown): boolean {
    return as(bare(operand), 'ColumnRef') !== undefined && this.#placeOf(operand) === undefined;
  }

  /** True if the tenant of the rows is known by a row outside alone. */
  isFromOutside(alias: string, column: string): boolean {
    return this.#fromOutside.has(`${alias}.${column}`);
  }

  known(alias: string, column: string): TenantId | undefined {
    return this.#known.get(`${alias}.${column}`);
  }

  /** The value of an operand, if it is one in the whole statement. */
  valueOf(operand: unknown): TenantId | undefined {
    const node = bare(operand);
    const param = as(node, 'ParamRef');
    if (param !== undefined) return String(this.#params[Number(param.number) - 1] ?? `$${param.number}`);
    const constant = as(node, 'A_Const');
    if (constant !== undefined) return JSON.stringify(constant.sval ?? null);
    const column = as(node, 'ColumnRef');
    return column === undefined ? undefined : this.#columnValue(names(column.fields));
  }

  #columnValue(path: readonly string[]): TenantId | undefined {
    const [alias, column] = this.#resolved(path);
    const row = this.#rows.get(alias);
    if (row === undefined)
      return this.#outer?.valueOf({ ColumnRef: { fields: path.map((sval) => ({ String: { sval } })) } });
    const known = this.#known.get(`${alias}.${column}`);
    if (known !== undefined || row.query === undefined) return known;
    const target = list(row.query.select.targetList)
      .map((item) => as(item, 'ResTarget'))
      .find((item) => item !== undefined && (item.name ?? columnOf(item.val)) === column);
    return target && row.query.scope.valueOf(target.val);
  }

  /** A bare column is of the only table. */
  #resolved(path: readonly string[]): readonly [alias: string, column: string] {
    if (path.length > 1) return [path[0]!, path[1]!];
    const [only] = this.#rows.keys();
    return [this.#rows.size === 1 ? only! : '', path[0]!];
  }

  #placeOf(operand: unknown): string | undefined {
    const column = as(bare(operand), 'ColumnRef');
    if (column === undefined) return undefined;
    const [alias, name] = this.#resolved(names(column.fields));
    return this.#rows.has(alias) ? `${alias}.${name}` : undefined;
  }
}

const columnOf = (value: unknown): string | undefined => names(as(value, 'ColumnRef')?.fields).at(-1);

/** Without casts. */
function bare(operand: unknown): unknown {
  const cast = as(operand, 'TypeCast');
  return cast === undefined ? operand : bare(cast.arg);
}

/** The equalities that the condition implies: of an `and` those of any part, of an `or` those of all parts. */
function equalities(condition: unknown): readonly Pair[] {
  const test = as(condition, 'A_Expr');
  if (test !== undefined) {
    const isEqual = test.kind === 'AEXPR_OP' && names(test.name).join() === '=';
    if (!isEqual) return [];
    const [left, right] = [as(test.lexpr, 'RowExpr'), as(test.rexpr, 'RowExpr')];
    if (left === undefined || right === undefined) return [[test.lexpr, test.rexpr]];
    return list(left.args).map((arg, i) => [arg, list(right.args)[i]] as const);
  }
  const bool = as(condition, 'BoolExpr');
  if (bool === undefined || bool.boolop === 'NOT_EXPR') return [];
  const parts = list(bool.args).map(equalities);
  if (bool.boolop === 'AND_EXPR') return parts.flat();
  const [first = [], ...others] = parts;
  return first.filter((pair) => others.every((pairs) => pairs.some((other) => spelling(other) === spelling(pair))));
}

/** Without places in the text. */
const spelling = (value: unknown): string =>
  JSON.stringify(value, (key, inner: unknown) => (key === 'location' ? undefined : inner));

/** The queries directly inside the parts of a query. */
export function queriesIn(parts: readonly unknown[]): readonly Tree[] {
  const found: Tree[] = [];
  walk(parts, (kind, node) => {
    if (kind !== 'SelectStmt') return false;
    found.push(node);
    return true;
  });
  return found;
}
