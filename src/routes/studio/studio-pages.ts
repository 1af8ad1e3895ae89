/** `/studio`, its pages, and the files that they load. Not in the OpenAPI document. */
import type { Context } from 'koa';
import { StaticText } from '../../http/answer/static-text.ts';
import { notFoundProblem } from '../../http/gate.ts';
import type { Route } from '../../http/route.ts';
import { loadStudio, type StudioBundle } from './studio-bundle.ts';

/** Only our own files; no script makes markup from text. */
const STUDIO_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' blob: data:",
  "connect-src 'self'",
  "font-src 'self'",
  "form-action 'self'",
  "frame-ancestors 'none'",
  "base-uri 'none'",
  "require-trusted-types-for 'script'",
  "trusted-types 'none'",
].join('; ');

interface StudioTexts {
  readonly page: StaticText;
  readonly assets: ReadonlyMap<string, StaticText>;
}

/** Bundling takes a second in a checkout: the first request waits for it. A failure is not kept. */
let loadingTexts: Promise<StudioTexts> | undefined;
function studioTexts(): Promise<StudioTexts> {
  loadingTexts ??= loadStudio().then(textsOf);
  loadingTexts.catch(() => {
    loadingTexts = undefined;
  });
  return loadingTexts;
}

function textsOf({ script, style, files }: StudioBundle): StudioTexts {
  const assets = Object.entries(files).map(([name, text]) => {
    const type = name.endsWith('.css') ? 'text/css' : 'text/javascript';
    return [name, new StaticText(`${type}; charset=utf-8`, text, 'immutable')] as const;
  });
  return { page: new StaticText('text/html; charset=utf-8', renderStudioPage(script, style)), assets: new Map(assets) };
}

const renderStudioPage = (script: string, style: string): string => `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark"><title>bylaw studio</title><link rel="icon" href="data:,">
<link rel="stylesheet" href="/studio/assets/${style}"><script type="module" src="/studio/assets/${script}"></script></head>
<body><div id="studio"><noscript>The studio needs JavaScript. <a href="/docs">The reference of the API</a> reads without it.</noscript></div></body></html>
`;

async function sendPage(ctx: Context): Promise<void> {
  ctx.set({ 'Content-Security-Policy': STUDIO_POLICY, 'Cross-Origin-Opener-Policy': 'same-origin' });
  await (await studioTexts()).page.send(ctx);
}

const pageRoute = (path: string): Route => ({ method: 'GET', path, door: 'public', accepts: 'any', handle: sendPage });

const asset: Route = {
  method: 'GET',
  path: '/studio/assets/:file',
  door: 'public',
  accepts: 'any',
  async handle(ctx) {
    const found = (await studioTexts()).assets.get(String(ctx.params.file));
    if (found === undefined) throw notFoundProblem();
    await found.send(ctx);
  },
};

/** A page has a name, and the name of its subject where it has one. */
export const studioRoutes: readonly Route[] = [
  asset,
  pageRoute('/studio'),
  pageRoute('/studio/:page'),
  pageRoute('/studio/:page/:subject'),
];
