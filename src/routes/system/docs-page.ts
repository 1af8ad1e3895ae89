/** Renders the OpenAPI document as one HTML page without scripts or external resources. */

/** The parts of an OpenAPI 3.1 document that the page shows. */
export interface ApiDocument {
  readonly info: { readonly title: string; readonly version: string; readonly description?: string };
  readonly paths: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
  readonly components?: {
    readonly schemas?: Readonly<Record<string, unknown>>;
    readonly responses?: Readonly<Record<string, Answer>>;
  };
}
type Content = Readonly<Record<string, { readonly schema?: unknown }>>;
interface Answer {
  readonly description?: string;
  readonly content?: Content;
}
interface Operation {
  readonly summary?: string;
  readonly description?: string;
  readonly tags?: readonly string[];
  readonly parameters?: readonly unknown[];
  readonly requestBody?: { readonly content?: Content };
  readonly responses?: Readonly<Record<string, Answer & { readonly $ref?: string }>>;
}
interface Entry {
  readonly path: string;
  readonly method: string;
  readonly operation: Operation;
}

export const STYLE = `
:root{color-scheme:light dark;font:16px/1.5 system-ui,sans-serif}
body{max-width:60rem;margin:2rem auto;padding:0 1rem}
h2{margin-top:2.5rem;border-bottom:1px solid #8886}
h4{margin:1rem 0 .25rem}
code,pre{font:0.9em/1.45 ui-monospace,monospace}
code{overflow-wrap:anywhere}
pre{padding:.75rem;overflow:auto;background:#8881;border-radius:6px}
details{margin:.5rem 0;padding:.4rem .8rem;border:1px solid #8884;border-radius:6px}
summary{cursor:pointer}
.method{display:inline-block;min-width:4.5em;font-weight:700}
table{border-collapse:collapse;margin:.5rem 0}
td{padding:.2rem .8rem .2rem 0;text-align:left;vertical-align:top}
td:first-child{white-space:nowrap}
nav{display:flex;flex-wrap:wrap;gap:.25rem 1rem}
@media(max-width:30rem){table,tbody,tr{display:block}tr{margin:.5rem 0}td{display:inline;padding:0 .4rem 0 0}}`;

const METHODS = ['get', 'head', 'post', 'patch', 'delete'];

export function renderDocs(document: ApiDocument): string {
  const { title, version, description } = document.info;
  const groups = Map.groupBy(entriesOf(document), ({ path, operation }) => operation.tags?.[0] ?? groupOf(path));
  const sections = [...groups].map(([name, entries]) => section(name, entries, document));
  const schemas = Object.entries(document.components?.schemas ?? {});
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>${text(title)}</title><style>${STYLE}</style></head>
<body><h1>${text(title)} <small>${text(version)}</small></h1>
${description === undefined ? '' : `<p>${prose(description)}</p>`}
<p>For programs: <a href="/openapi.json">/openapi.json</a></p>
<nav>${[...groups.keys(), 'schemas'].map((name) => `<a href="#${attribute(name)}">${text(name)}</a>`).join('')}</nav>
${sections.join('\n')}
<h2 id="schemas">Schemas</h2>
${schemas.map(([name, schema]) => `<details id="schema-${attribute(name)}"><summary><code>${text(name)}</code></summary>${json(schema)}</details>`).join('\n')}
</body></html>
`;
}

function entriesOf({ paths }: ApiDocument): readonly Entry[] {
  return Object.entries(paths).flatMap(([path, item]) =>
    METHODS.filter((method) => Object.hasOwn(item, method)).map((method) => ({
      path,
      method,
      operation: item[method] as Operation,
    })),
  );
}

/** `/api/posts/{id}` → posts. */
const groupOf = (path: string): string => /^\/api\/([^/]+)/.exec(path)?.[1] ?? 'system';

function section(name: string, entries: readonly Entry[], document: ApiDocument): string {
  return `<h2 id="${attribute(name)}">${text(name)}</h2>\n${entries.map((each) => entry(each, document)).join('\n')}`;
}

function entry({ path, method, operation }: Entry, document: ApiDocument): string {
  const { summary = '', description, parameters = [], requestBody, responses = {} } = operation;
  const answers = Object.entries(responses).map(([status, given]) => answer(status, resolve(given, document)));
  const parts = [
    description === undefined ? '' : `<p>${prose(description)}</p>`,
    parameters.length === 0 ? '' : `<h4>Parameters</h4><table>${parameters.map(parameter).join('')}</table>`,
    requestBody === undefined ? '' : `<h4>Body</h4>${contentOf(requestBody.content)}`,
    `<h4>Responses</h4><table>${answers.join('')}</table>`,
  ];
  const head = `<span class="method">${text(method.toUpperCase())}</span> <code>${text(path)}</code> ${prose(summary)}`;
  return `<details><summary>${head}</summary>${parts.join('')}</details>`;
}

function parameter(given: unknown): string {
  const { name, in: place, description, schema } = given as Readonly<Record<string, unknown>>;
  const type = JSON.stringify(schema ?? {});
  const meaning = `${prose(String(description ?? ''))} <code>${text(type)}</code>`;
  return `<tr><td><code>${text(String(name))}</code></td><td>${text(String(place))}</td><td>${meaning}</td></tr>`;
}

/** Follows a reference to a shared response, whose body the page does not repeat. */
function resolve(
  given: Answer & { readonly $ref?: string },
  { components }: ApiDocument,
): Answer & { readonly shared?: true } {
  if (given.$ref === undefined) return given;
  return { ...components?.responses?.[given.$ref.split('/').at(-1)!], shared: true };
}

function answer(status: string, { description = '', content, shared }: Answer & { readonly shared?: true }): string {
  const body = shared ? '' : contentOf(content);
  return `<tr><td><code>${text(status)}</code></td><td>${prose(description)}${body}</td></tr>`;
}

const contentOf = (content: Content = {}): string =>
  Object.entries(content)
    .map(([type, { schema }]) => `<div><code>${text(type)}</code></div>${json(schema ?? {})}`)
    .join('');

/** Links each reference to the schema that it names. */
const json = (value: unknown): string =>
  `<pre>${text(JSON.stringify(value, null, 2)).replaceAll(
    /#\/components\/schemas\/([\w-]+)/g,
    (reference, name: string) => `<a href="#schema-${name}">${reference}</a>`,
  )}</pre>`;

const ESCAPES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};
const text = (value: string): string => value.replaceAll(/[&<>"']/g, (character) => ESCAPES[character]!);
const attribute = (value: string): string => text(value.replaceAll(/\s/g, '-'));
/** Backticks mark code. */
const prose = (value: string): string => text(value).replaceAll(/`([^`]+)`/g, '<code>$1</code>');
