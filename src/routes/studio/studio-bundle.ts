/** Joins the modules of the studio, and of the playground, for browsers. Not a route. */
import { hash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

export type PageName = 'studio' | 'playground';
const ENTRIES: Readonly<Record<PageName, string>> = {
  studio: 'src/studio/app/start-studio.tsx',
  playground: 'src/playground/start-playground.tsx',
};
const OWN_STYLE = 'src/studio/studio.css';
const STYLES: Readonly<Record<PageName, readonly string[]>> = {
  studio: ['node_modules/uplot/dist/uPlot.min.css', OWN_STYLE],
  playground: [OWN_STYLE],
};

export interface StudioBundle {
  /** The names of the script and the style that the page loads. */
  readonly script: string;
  readonly style: string;
  /** Texts by name. */
  readonly files: Readonly<Record<string, string>>;
  /** The paths of the joined modules. */
  readonly modules: readonly string[];
}

/** `root`: the folder of a checkout. */
export async function bundlePage(root: string, name: PageName): Promise<StudioBundle> {
  // Only a checkout has it.
  const { rolldown } = await import('rolldown');
  const bundle = await rolldown({
    cwd: root,
    input: { [name]: ENTRIES[name] },
    platform: 'browser',
    tsconfig: 'src/studio/tsconfig.json',
    // The studio imports no room of the service: it knows this module by its name and its declaration.
    resolve: { alias: { 'bylaw:page-tests': join(root, 'src/workbench/page/page-tests.ts') } },
    transform: { target: 'es2023' },
    // A browser has no module of Node.
    onLog: (_level, log) => {
      if (log.code === 'UNRESOLVED_IMPORT') throw new Error(log.message);
    },
  });
  const { output } = await bundle.generate({
    format: 'esm',
    minify: true,
    entryFileNames: '[name]-[hash].js',
    chunkFileNames: '[name]-[hash].js',
  });
  await bundle.close();
  const scripts = output.flatMap((part) => (part.type === 'chunk' ? [part] : []));
  const css = STYLES[name].map((file) => readFileSync(join(root, file), 'utf8')).join('\n');
  const style = `${name}-${hash('sha256', css, 'hex').slice(0, 12)}.css`;
  return {
    script: scripts.find(({ isEntry }) => isEntry)!.fileName,
    style,
    files: { [style]: css, ...Object.fromEntries(scripts.map(({ fileName, code }) => [fileName, code])) },
    modules: scripts.flatMap(({ moduleIds }) => moduleIds),
  };
}
