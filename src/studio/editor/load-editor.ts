/** The compiler, the text field and the reader of schema files load once, at the first use. */
import { useEffect, useState } from 'preact/hooks';

export type PolicyTools = typeof import('./policy-tools.ts');

/** A hook that gives the module, and undefined until it is wanted and has loaded. A failure is not kept. */
function loadedOnce<Module>(load: () => Promise<Module>): (isWanted?: boolean) => Module | undefined {
  let loading: Promise<Module> | undefined;
  return (isWanted = true) => {
    const [module, setModule] = useState<Module>();
    useEffect(() => {
      if (!isWanted) return;
      loading ??= load();
      loading.then(setModule, () => {
        loading = undefined;
      });
    }, [isWanted]);
    return module;
  };
}

export const usePolicyTools = loadedOnce(() => import('./policy-tools.ts'));
export type SchemaText = typeof import('./rules-in-text.ts');

export const useSchemaText = loadedOnce(() => import('./rules-in-text.ts'));
export const useCodeField = loadedOnce(() => import('./code-field.ts'));
