/** Modules that load at their first use. */
import { useEffect, useState } from 'preact/hooks';

/** A hook that gives the module, and undefined until it is wanted and has loaded. A failure is not kept. */
export function loadedOnce<Module>(load: () => Promise<Module>): (isWanted?: boolean) => Module | undefined {
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
