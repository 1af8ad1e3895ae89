/** Names the tests that failed after all other output: a reader of a build's log looks at its end. */
import type { Reporter, TestModule } from 'vitest/node';

export default class Verdicts implements Reporter {
  onTestRunEnd(modules: readonly TestModule[]): void {
    for (const module of modules) {
      const name = module.relativeModuleId;
      for (const test of module.children.allTests('failed')) console.error(`failed: ${name} > ${test.fullName}`);
      if (module.errors().length > 0) console.error(`failed: ${name}`);
    }
  }
}
