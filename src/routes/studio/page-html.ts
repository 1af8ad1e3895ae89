/** The document of a page, which loads a script and a style. Not a route. */
import { DEFAULT_STUDIO_PATH } from '../../schema/model/settings/studio-settings.ts';

interface PageFiles {
  readonly script: string;
  readonly style: string;
  /** A policy in the document, where no server sends one. */
  readonly policy?: string;
  /** Admits the styles that the script writes. */
  readonly nonce?: string;
  /** The path of the studio, for its script. */
  readonly root?: string;
}

export const pageHtml = ({
  script,
  style,
  policy,
  nonce,
  root = DEFAULT_STUDIO_PATH,
}: PageFiles): string => `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
${policy === undefined ? '' : `<meta http-equiv="Content-Security-Policy" content="${policy}">`}
<meta name="color-scheme" content="light dark"><title>bylaw studio</title><link rel="icon" href="data:,">
<link rel="stylesheet" href="${style}"><script type="module" src="${script}"${nonce === undefined ? '' : ` nonce="${nonce}"`}></script></head>
<body><div id="studio" data-root="${root}">
<noscript>This page needs JavaScript. <a href="/docs">The reference of the API</a> reads without it.</noscript></div></body></html>
`;
