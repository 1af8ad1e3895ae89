/** A compiler under test: this tree's, or a copy of it with a fault put in. */
import { pathToFileURL } from 'node:url';

type ParserModule = typeof import('../../../grammar/parser.ts');
type CheckModule = typeof import('../../../src/policy/check/checker.ts');
type ExplainModule = typeof import('../../../src/policy/analyse/explanation.ts');
type CallsModule = typeof import('../../../src/policy/check/condition-calls.ts');
type CompileModule = typeof import('../../../src/policy/compile.ts');
type RoutingModule = typeof import('../../../src/policy/analyse/routing.ts');
type RowsModule = typeof import('../../../src/policy/stored-rows.ts');
type SqlModule = typeof import('../../../src/sql.ts');

export interface Compiler {
  readonly parse: ParserModule['parse'];
  readonly checkExpr: CheckModule['checkExpr'];
  readonly readHead: CallsModule['readHead'];
  readonly namedCondition: CallsModule['namedCondition'];
  readonly compileChecked: CompileModule['compileChecked'];
  readonly explain: ExplainModule['explain'];
  readonly provenPins: RoutingModule['provenPins'];
  readonly rowsOf: RowsModule['rowsOf'];
  readonly sql: SqlModule;
}

export const ROOT = new URL('../../../', import.meta.url);

/** Loads modules of one tree, by their paths in it. */
export const loaderOf =
  (root: URL) =>
  async <T>(path: string): Promise<T> =>
    (await import(new URL(path, root).href)) as T;

export async function loadCompiler(root: URL = ROOT): Promise<Compiler> {
  const load = loaderOf(root);
  const { parse } = await load<ParserModule>('grammar/parser.ts');
  const { checkExpr } = await load<CheckModule>('src/policy/check/checker.ts');
  const { compileChecked } = await load<CompileModule>('src/policy/compile.ts');
  const { explain } = await load<ExplainModule>('src/policy/analyse/explanation.ts');
  const { readHead, namedCondition } = await load<CallsModule>('src/policy/check/condition-calls.ts');
  const { provenPins } = await load<RoutingModule>('src/policy/analyse/routing.ts');
  const { rowsOf } = await load<RowsModule>('src/policy/stored-rows.ts');
  const sql = await load<SqlModule>('src/sql.ts');
  return { parse, checkExpr, readHead, namedCondition, compileChecked, explain, provenPins, rowsOf, sql };
}

export const rootOf = (folder: string): URL => pathToFileURL(`${folder}/`);
