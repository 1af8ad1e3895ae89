/**
 * Names, after all else, the tests that failed, and those that passed only when they ran again: the end of a long log
 * is what a reader of a build sees.
 */
import type { Reporter, TestModule } from 'vitest/node';

export default class Verdicts implements Reporter {
  onTestRunEnd(modules: readonly TestModule[]): void {
    const tests = modules.flatMap((module) =>
      [...module.children.allTests()].map((test) => ({ name: `${module.relativeModuleId} > ${test.fullName}`, test })),
    );
    const failed = tests.filter(({ test }) => test.result().state === 'failed');
    const again = tests.filter(({ test }) => test.diagnostic()?.flaky === true);
    for (const { name } of again) console.error(`passed only when it ran again: ${name}`);
    for (const { name } of failed) console.error(`failed: ${name}`);
    for (const module of modules) {
      if (module.errors().length > 0) console.error(`failed: ${module.relativeModuleId}`);
    }
  }
}
