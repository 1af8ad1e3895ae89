/**
 * A Citus cluster rejects, or pays dearly for, statements that hash partitions accept: every statement that a schema with
 * distributed collections sends is parsed with PostgreSQL's own grammar and checked by these rules. They come from a trial
 * of the service on a cluster.
 */
import { tablesOf } from '../../../src/migrations/tables.ts';
import type { Schema } from '../../../src/schema/model/model.ts';
import { queriesIn, Scope, type TenantId } from './scope.ts';
import { as, isTree, list, names, parse, type Tree, walk } from './syntax.ts';

/** In statements that are about the records of all tenants. */
const EVERY_TENANT = '/* every tenant */';

/** `unpinned`: rows of any tenant. `two_tenants`: of more than one. `outer_tenant`: of the tenant of a row outside. */
export type Offence =
  | 'unpinned'
  | 'two_tenants'
  | 'outer_tenant'
  | 'lock_on_all'
  | 'local_beside'
  | 'function_in_returning'
  | 'function_in_update'
  | 'function_in_conflict'
  | 'param_in_returning'
  | 'set_constraints'
  | 'deferrable'
  | 'unrouted_insert'
  | 'select_without_from'
  | 'tenant_changed';

interface Statement {
  readonly text: string;
  readonly values?: readonly unknown[];
}

export class Judge {
  /** Column of the tenant by table. */
  readonly #divided = new Map<string, string>();
  readonly #replicated = new Set<string>();
  readonly #unstable: ReadonlySet<string>;

  /** @param unstable names of functions that are not immutable */
  constructor(schema: Schema, unstable: ReadonlySet<string>) {
    this.#unstable = unstable;
    for (const { name, tenantLayout } of tablesOf(schema).values()) {
      if (tenantLayout?.kind === 'by') this.#divided.set(name, tenantLayout.column);
      if (tenantLayout?.kind === 'reference') this.#replicated.add(name);
    }
  }

  offences({ text, values = [] }: Statement): readonly Offence[] {
    return [...new Set(parse(text).flatMap((tree) => new Hearing(this, { text, values }, tree).offences))];
  }

  tenantColumn(table: string): string | undefined {
    return this.#divided.get(table);
  }

  /** Neither divided nor on every machine: on the coordinator. */
  isLocal(table: string): boolean {
    return !this.#divided.has(table) && !this.#replicated.has(table);
  }

  isSpread(table: string): boolean {
    return !this.isLocal(table);
  }

  isUnstable(call: Tree): boolean {
    return this.#unstable.has(names(call.funcname).at(-1) ?? '');
  }

  callsUnstable(part: unknown): boolean {
    let isFound = false;
    walk(part, (kind, node) => {
      if (kind === 'FuncCall' && this.isUnstable(node)) isFound = true;
      return false;
    });
    return isFound;
  }
}

/** The check of a single statement. */
class Hearing {
  readonly offences: Offence[] = [];
  readonly #judge: Judge;
  readonly #isForAll: boolean;
  readonly #tables = new Set<string>();
  readonly #tenants = new Set<TenantId>();
  /** Names of the queries before the statement's own. */
  readonly #named = new Set<string>();

  constructor(judge: Judge, { text, values }: Required<Statement>, tree: Tree) {
    this.#judge = judge;
    this.#isForAll = text.includes(EVERY_TENANT);
    const [[kind = '', node] = []] = Object.entries(tree);
    if (!isTree(node)) return;
    const scope = new Scope(undefined, values);
    if (kind === 'SelectStmt') this.#select(node, scope);
    if (kind === 'InsertStmt') this.#insert(node, scope);
    if (kind === 'UpdateStmt') this.#update(node, scope);
    if (kind === 'DeleteStmt') this.#change(node, scope, [...list(node.usingClause)]);
    if (kind === 'ConstraintsSetStmt') this.offences.push('set_constraints');
    if (kind === 'CreateStmt' || kind === 'AlterTableStmt') this.#definition(node);
    if (this.#tenants.size > 1) this.offences.push('two_tenants');
    const tables = [...this.#tables];
    const isDivided = tables.some((table) => judge.tenantColumn(table) !== undefined);
    if (isDivided && tables.some((table) => judge.isLocal(table))) this.offences.push('local_beside');
  }

  #definition(node: Tree): void {
    walk(node, (kind, { deferrable }) => {
      if (kind === 'Constraint' && deferrable === true) this.offences.push('deferrable');
      return false;
    });
  }

  // -------------------------------------------------------------- queries

  #select(node: Tree, scope: Scope): void {
    this.#with(node, scope);
    if (node.op !== 'SETOP_NONE') {
      for (const half of [node.larg, node.rarg]) if (isTree(half)) this.#select(half, scope.inner());
      return;
    }
    const conditions = this.#from(list(node.fromClause), scope);
    this.#settle(scope, [...conditions, node.whereClause]);
    if (list(node.lockingClause).length > 0 && this.#isForAll) this.offences.push('lock_on_all');
    const { fromClause: _, withClause: __, ...rest } = node;
    for (const query of queriesIn(Object.values(rest))) this.#select(query, scope.inner());
    for (const query of queriesIn(conditions)) this.#select(query, scope.inner());
  }

  #with(node: Tree, scope: Scope): void {
    const ctes = list(as(node, 'withClause')?.ctes).map((cte) => as(cte, 'CommonTableExpr'));
    for (const cte of ctes) this.#named.add(String(cte?.ctename));
    for (const cte of ctes) {
      const query = as(cte?.ctequery, 'SelectStmt');
      if (query !== undefined) this.#select(query, scope.inner());
    }
  }

  /** Adds the rows. Returns the conditions of joins, which hold for all of them where no join is an outer one. */
  #from(items: readonly unknown[], scope: Scope): readonly unknown[] {
    return items.flatMap((item) => {
      const table = as(item, 'RangeVar');
      if (table !== undefined) this.#table(table, scope);
      const subselect = as(item, 'RangeSubselect');
      if (subselect !== undefined) this.#subselect(subselect, scope);
      const join = as(item, 'JoinExpr');
      if (join === undefined) return [];
      return [...this.#from([join.larg, join.rarg], scope), ...(join.jointype === 'JOIN_INNER' ? [join.quals] : [])];
    });
  }

  #table(node: Tree, scope: Scope): void {
    const name = String(node.relname);
    if (this.#named.has(name)) return;
    this.#tables.add(name);
    scope.addTable(node);
  }

  /** Its own conditions are heard when those of the rows beside it are known. */
  #subselect(node: Tree, scope: Scope): void {
    const select = as(node.subquery, 'SelectStmt');
    if (select === undefined) return;
    const inner = scope.inner();
    scope.addQuery(String(as(node, 'alias')?.aliasname), inner, select);
    this.#later.push(() => this.#select(select, inner));
  }

  #later: (() => void)[] = [];

  /** With all rows there: what is known of their tenants. */
  #settle(scope: Scope, conditions: readonly unknown[]): void {
    const [later, around] = [this.#later, [] as (() => void)[]];
    this.#later = around;
    scope.learn(conditions.filter((condition) => condition !== undefined));
    for (const [alias, table] of scope.tables) this.#assertPinned(scope, alias, table);
    for (const hear of later) hear();
  }

  #assertPinned(scope: Scope, alias: string, table: string): void {
    const column = this.#judge.tenantColumn(table);
    if (column === undefined) return;
    const tenant = scope.known(alias, column);
    if (tenant !== undefined) this.#tenants.add(tenant);
    if (this.#isForAll) return;
    if (tenant === undefined) this.offences.push('unpinned');
    else if (scope.isFromOutside(alias, column)) this.offences.push('outer_tenant');
  }

  // -------------------------------------------------------------- writes

  /** An UPDATE or a DELETE. */
  #change(node: Tree, scope: Scope, from: readonly unknown[]): void {
    this.#with(node, scope);
    if (isTree(node.relation)) this.#table(node.relation, scope);
    const conditions = this.#from(from, scope);
    this.#settle(scope, [...conditions, node.whereClause]);
    const { relation: _, withClause: __, fromClause: ___, usingClause: ____, ...rest } = node;
    for (const query of queriesIn(Object.values(rest))) this.#select(query, scope.inner());
    this.#returning(node);
  }

  #update(node: Tree, scope: Scope): void {
    this.#change(node, scope, list(node.fromClause));
    const table = String(isTree(node.relation) ? node.relation.relname : '');
    const targets = list(node.targetList).map((target) => as(target, 'ResTarget')?.name);
    if (targets.includes(this.#judge.tenantColumn(table) ?? '')) this.offences.push('tenant_changed');
    if (this.#judge.isSpread(table) && list(node.targetList).some((target) => this.#isStableOfColumn(target)))
      this.offences.push('function_in_update');
  }

  #isStableOfColumn(target: unknown): boolean {
    let [isUnstable, readsColumn] = [false, false];
    walk(target, (kind, node) => {
      if (kind === 'FuncCall' && this.#judge.isUnstable(node)) isUnstable = true;
      if (kind === 'ColumnRef') readsColumn = true;
      return false;
    });
    return isUnstable && readsColumn;
  }

  #insert(node: Tree, scope: Scope): void {
    const table = String(isTree(node.relation) ? node.relation.relname : '');
    this.#tables.add(table);
    this.#returning(node);
    if (this.#judge.callsUnstable(node.onConflictClause)) this.offences.push('function_in_conflict');
    const select = as(node.selectStmt, 'SelectStmt');
    const column = this.#judge.tenantColumn(table);
    if (select === undefined) return;
    const rows = list(select.valuesLists);
    if (rows.length === 0) {
      // The coordinator sends them without their types.
      const hasParam = has(as(node, 'returningClause')?.exprs, 'ParamRef');
      if (hasParam && this.#judge.isSpread(table)) this.offences.push('param_in_returning');
      this.#select(select, scope);
      const isBare = list(select.fromClause).length === 0 && select.whereClause !== undefined;
      if (isBare && this.#judge.isSpread(table)) this.offences.push('select_without_from');
    }
    if (column === undefined) return;
    const place = list(node.cols).findIndex((col) => as(col, 'ResTarget')?.name === column);
    const cells =
      rows.length === 0
        ? [as(list(select.targetList)[place], 'ResTarget')?.val]
        : rows.map((row) => list(as(row, 'List')?.items)[place]);
    for (const cell of cells) {
      const tenant = cell === undefined ? undefined : scope.valueOf(cell);
      if (tenant !== undefined) this.#tenants.add(tenant);
      else if (!this.#isForAll) this.offences.push('unrouted_insert');
    }
    if (!isTree(node.relation)) return;
    // The row that is returned is the one that was written.
    const written = scope.inner();
    written.addTable(node.relation);
    written.learn([equal(column, cells[0])]);
    for (const query of queriesIn([as(node, 'returningClause')?.exprs])) this.#select(query, written.inner());
  }

  #returning(node: Tree): void {
    const table = String(isTree(node.relation) ? node.relation.relname : '');
    if (!this.#judge.isSpread(table)) return;
    // Subqueries are run where the row is.
    walk(as(node, 'returningClause')?.exprs, (kind, inner) => {
      if (kind === 'FuncCall' && this.#judge.isUnstable(inner)) this.offences.push('function_in_returning');
      return kind === 'SubLink';
    });
  }
}

/** True if the part has a node of the kind. */
function has(part: unknown, wanted: string): boolean {
  let isFound = false;
  walk(part, (kind) => {
    if (kind === wanted) isFound = true;
    return false;
  });
  return isFound;
}

const equal = (column: string, value: unknown): object => ({
  A_Expr: {
    kind: 'AEXPR_OP',
    name: [{ String: { sval: '=' } }],
    lexpr: { ColumnRef: { fields: [{ String: { sval: column } }] } },
    rexpr: value,
  },
});
