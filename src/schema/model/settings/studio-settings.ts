/** The path and the origins of the studio. */
import { hintOf } from '../../../../grammar/suggest.ts';
import type { SchemaFile } from '../../file/shape.ts';
import type { StudioOptions } from '../model.ts';
import type { Settings } from './settings.ts';

export const DEFAULT_STUDIO_PATH = '/studio';
const URL_PATH = /^(?:\/[a-z0-9][a-z0-9_-]*)+$/;
/** The first parts of the paths of other routes. */
const TAKEN_PATHS: ReadonlySet<string> = new Set(['api', 'auth', 'docs', 'healthz', 'metrics', 'playground', 'readyz']);

export function readStudio({ studio = {} }: SchemaFile, { report }: Settings): StudioOptions {
  const { path = DEFAULT_STUDIO_PATH, origins } = studio;
  const [, first = ''] = path.split('/');
  if (!URL_PATH.test(path)) {
    const expected =
      'expected one such as `/admin` or `/ops/studio`: `/`, then lower-case letters, digits, `-` and `_`';
    const message = `\`${path}\` is not a path of the studio; ${expected}`;
    report({ code: 'invalid_studio', message, path: ['studio', 'path'] });
  } else if (TAKEN_PATHS.has(first)) {
    const message = `\`/${first}\` belongs to other routes of the service; expected another path for the studio, such as \`/admin\``;
    report({ code: 'invalid_studio', message, path: ['studio', 'path'] });
  }
  for (const [i, origin] of (origins ?? []).entries()) {
    const url = URL.canParse(origin) ? new URL(origin) : undefined;
    const isWeb = url !== undefined && /^https?:$/.test(url.protocol);
    if (isWeb && url.origin === origin) continue;
    const exact = isWeb ? url.origin : undefined;
    const hint = hintOf(exact) || '; expected one such as `https://admin.example.com`';
    const message = `\`${origin}\` is not an origin of the studio${hint}`;
    report({ code: 'invalid_origin', message, path: ['studio', 'origins', i], replacement: exact });
  }
  return { path, origins };
}
