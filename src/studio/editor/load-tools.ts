/** Loads the compiler once. */
import { useEffect, useState } from 'preact/hooks';

export type PolicyTools = typeof import('./policy-tools.ts');

let loading: Promise<PolicyTools> | undefined;

/** Undefined until the compiler has loaded. A failure is not kept. */
export function usePolicyTools(): PolicyTools | undefined {
  const [tools, setTools] = useState<PolicyTools>();
  useEffect(() => {
    loading ??= import('./policy-tools.ts');
    loading.then(setTools, () => {
      loading = undefined;
    });
  }, []);
  return tools;
}
