/** The studio and `/playground`, their pages, and the files that they load. Not in the OpenAPI document. */
import { randomBytes } from 'node:crypto';
import { fileURLToPath } from 'node:url';
import type { Context } from 'koa';
import { type PackedForms, StaticText } from '../../http/answer/static-text.ts';
import { notFoundProblem } from '../../http/gate.ts';
import type { Route } from '../../http/route.ts';
import { readPacked } from './packed-bundle.ts';
import { pageHtml } from './page-html.ts';
import { bundlePage, type PageName, type StudioBundle } from './studio-bundle.ts';
import { hasStudio } from './studio-origin.ts';

/** Only our own files, and the style that the editor writes into a page with this nonce; no script makes markup from text. */
const securityPolicyOf = (nonce: string): string =>
  [
    "default-src 'none'",
    "script-src 'self'",
    `style-src 'self' 'nonce-${nonce}'`,
    "img-src 'self' blob: data:",
    "connect-src 'self'",
    "font-src 'self'",
    "form-action 'self'",
    "frame-ancestors 'none'",
    "base-uri 'none'",
    "require-trusted-types-for 'script'",
    "trusted-types 'none'",
  ].join('; ');

interface StudioPagePlace {
  readonly nonce: string;
  /** The path of the studio. */
  readonly root: string;
}
interface BundleFile {
  readonly text: string | Buffer;
  /** Its compressed forms, if the package ships them. */
  readonly packed?: PackedForms;
}
interface StudioTexts {
  readonly pageWith: (place: StudioPagePlace) => string;
  readonly assets: ReadonlyMap<string, StaticText>;
}

/** The files of the pages. Bundling takes a second in a checkout: the first request waits for it. */
class StudioFiles {
  readonly #loading = new Map<PageName, Promise<StudioTexts>>();

  /** A failure is not kept. */
  textsOf(name: PageName): Promise<StudioTexts> {
    const known = this.#loading.get(name);
    if (known !== undefined) return known;
    const texts = loadTexts(name);
    this.#loading.set(name, texts);
    texts.catch(() => this.#loading.delete(name));
    return texts;
  }
}

const studioFiles = new StudioFiles();

/** The folder of the package that holds the bundles, beside the folder of the module that reads it. */
const PACKED_FOLDER = fileURLToPath(new URL('../studio', import.meta.url));

/** Reads the bundle of the package; in a checkout, makes it. */
async function loadTexts(name: PageName): Promise<StudioTexts> {
  const packed = readPacked(PACKED_FOLDER, name);
  if (packed !== undefined) return bundleTexts(packed, packed.files);
  const made = await bundlePage(fileURLToPath(new URL('../../..', import.meta.url)), name);
  const files = Object.entries(made.files).map(([file, text]) => [file, { text }] as const);
  return bundleTexts(made, new Map(files));
}

function bundleTexts(
  { script, style }: Pick<StudioBundle, 'script' | 'style'>,
  files: ReadonlyMap<string, BundleFile>,
): StudioTexts {
  const assets = files.entries().map(([name, { text, packed }]) => {
    const type = name.endsWith('.css') ? 'text/css' : 'text/javascript';
    return [
      name,
      new StaticText(`${type}; charset=utf-8`, text, { caching: 'immutable', ...(packed && { packed }) }),
    ] as const;
  });
  const pageWith = ({ nonce, root }: StudioPagePlace): string =>
    pageHtml({ script: `${root}/assets/${script}`, style: `${root}/assets/${style}`, nonce, root });
  return { pageWith, assets: new Map(assets) };
}

async function sendStudioPage(ctx: Context, { pageWith }: StudioTexts, root: string): Promise<void> {
  const nonce = randomBytes(16).toString('base64');
  ctx.set({
    'Content-Security-Policy': securityPolicyOf(nonce),
    'Cross-Origin-Opener-Policy': 'same-origin',
    // Without an ETag: a stored page would have the nonce of another answer.
    'Cache-Control': 'no-cache',
  });
  ctx.type = 'text/html; charset=utf-8';
  ctx.body = pageWith({ nonce, root });
}

/**
 * A page has a name, and the name of its subject where it has one.
 * @param isJoinedAnew the files are made for these routes alone: each save of `bylaw dev` has routes of its own
 */
export function studioRoutesAt(root: string, isJoinedAnew: boolean): readonly Route[] {
  const files = isJoinedAnew ? new StudioFiles() : studioFiles;
  const pageRoute = (path: string, name: PageName = 'studio'): Route => ({
    method: 'GET',
    path,
    door: 'public',
    accepts: 'any',
    async handle(ctx, { schema }) {
      if (!hasStudio(ctx, schema)) throw notFoundProblem();
      await sendStudioPage(ctx, await files.textsOf(name), root);
    },
  });
  return [
    assetRoute(root, files),
    pageRoute(root),
    pageRoute(`${root}/:page`),
    pageRoute(`${root}/:page/:subject`),
    pageRoute('/playground', 'playground'),
  ];
}

const assetRoute = (root: string, files: StudioFiles): Route => ({
  method: 'GET',
  path: `${root}/assets/:file`,
  door: 'public',
  accepts: 'any',
  async handle(ctx, { schema }) {
    const file = String(ctx.params.file);
    const name: PageName = file.startsWith('playground-') ? 'playground' : 'studio';
    const found = hasStudio(ctx, schema) ? (await files.textsOf(name)).assets.get(file) : undefined;
    if (found === undefined) throw notFoundProblem();
    await found.send(ctx);
  },
});
