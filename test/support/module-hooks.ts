/**
 * For `node --import`: hides the packages that `TEST_HIDDEN` names (separated by commas), as if they were not installed, and writes the packages
 * that the process loaded into the file `TEST_LOADED` when it ends.
 */
import { writeFileSync } from 'node:fs';
import { registerHooks } from 'node:module';

const { TEST_HIDDEN = '', TEST_LOADED } = process.env;
const hidden = new Set(TEST_HIDDEN.split(','));
const loaded = new Set<string>();

registerHooks({
  resolve(specifier, context, next) {
    if (hidden.has(specifier)) {
      const message = `Cannot find package '${specifier}' imported from ${context.parentURL}`;
      throw Object.assign(new Error(message), { code: 'ERR_MODULE_NOT_FOUND' });
    }
    return next(specifier, context);
  },
  load(url, context, next) {
    const path = url.split('/node_modules/').at(-1)!;
    if (path !== url) loaded.add(/^(?:@[^/]+\/)?[^/]+/.exec(path)![0]);
    return next(url, context);
  },
});
/** Node.js loads its own `fetch` when it is first called, or `node:http` is imported as an ES module. */
const hasFetch = (): boolean =>
  (process as unknown as { readonly moduleLoadList: readonly string[] }).moduleLoadList.includes(
    'NativeModule internal/deps/undici/undici',
  );
if (TEST_LOADED !== undefined)
  process.on('exit', () => {
    if (hasFetch()) loaded.add('fetch');
    writeFileSync(TEST_LOADED, JSON.stringify([...loaded].sort()));
  });
