/** The compiler of filters under test, beside that of policies. */
import { type Compiler, loadCompiler, loaderOf, ROOT } from '../policies/compiler.ts';

type FilterModule = typeof import('../../../src/policy/filter.ts');
type AccessModule = typeof import('../../../src/policy/access.ts');
type CheckModule = typeof import('../../../src/policy/check/checker.ts');

export interface QueryCompiler extends Compiler {
  readonly compileFilter: FilterModule['compileFilter'];
  readonly examine: CheckModule['examine'];
  readonly decide: AccessModule['decide'];
}

export async function loadQueryCompiler(root: URL = ROOT): Promise<QueryCompiler> {
  const load = loaderOf(root);
  const { compileFilter } = await load<FilterModule>('src/policy/filter.ts');
  const { examine } = await load<CheckModule>('src/policy/check/checker.ts');
  const { decide } = await load<AccessModule>('src/policy/access.ts');
  return { ...(await loadCompiler(root)), compileFilter, examine, decide };
}
