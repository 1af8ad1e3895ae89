/**
 * The OpenAPI document as one HTML page. It reads without script; page.js adds search and a console
 * that sends requests.
 */
import {
  type ApiDocument,
  type Content,
  nameOfRef,
  neededReferences,
  type Response,
  resolved,
  type ShownOperation,
  type ShownParameter,
  type ShownSchema,
} from '../../../describe/api-document.ts';
import { exampleValue } from '../../../describe/example-value.ts';
import { html } from '../../pages/escaped.ts';
import { attribute, code, prose } from './html-text.ts';
import { fieldRows, REQUIRED, typeWords } from './schema-words.ts';

interface DocumentedOperation {
  readonly path: string;
  readonly method: string;
  readonly operation: ShownOperation;
}

const SHOWN_METHODS = ['get', 'head', 'post', 'put', 'patch', 'delete'];

export function renderDocs(document: ApiDocument): string {
  const { title, version, description } = document.info;
  const groups = Map.groupBy(operationsOf(document), ({ operation }) => operation.tags?.[0] ?? 'other');
  const sections = [...groups].map(([name, entries]) => section(name, entries, document));
  const schemas = Object.entries(document.components?.schemas ?? {}).map(
    ([name, schema]) =>
      `<details class="schema" id="schema-${attribute(name)}"><summary>${code(name)}</summary>` +
      `<div class="body">${fieldRows(schema, document)}</div></details>`,
  );
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1"><title>${html(title)}</title>
<link rel="stylesheet" href="/docs/page.css"><script src="/docs/page.js" defer></script></head>
<body><a class="skip" href="#content">To the operations</a>
<header><h1>${html(title)} <small>${html(version)}</small></h1>
<p>${description === undefined ? '' : prose(description)} For programs: <a href="/openapi.json">/openapi.json</a></p>
<div id="tools" hidden></div></header>
<div class="columns"><nav aria-label="Operations">${[...groups].map(navigation).join('')}<p><a href="#schemas">schemas</a></p></nav>
<main id="content">${sections.join('\n')}
<section><h2 id="schemas">schemas</h2>${schemas.join('\n')}</section></main></div>
</body></html>
`;
}

function operationsOf({ paths }: ApiDocument): readonly DocumentedOperation[] {
  return Object.entries(paths).flatMap(([path, item]) =>
    SHOWN_METHODS.filter((method) => Object.hasOwn(item, method)).map((method) => ({
      path,
      method,
      operation: item[method] as ShownOperation,
    })),
  );
}

const anchorOf = ({ operationId }: ShownOperation): string => `op-${attribute(operationId)}`;
const badge = (method: string): string => `<span class="method ${method}">${html(method.toUpperCase())}</span>`;

function navigation([name, entries]: readonly [string, readonly DocumentedOperation[]]): string {
  const links = entries.map(
    ({ method, path, operation }) =>
      `<li><a href="#${anchorOf(operation)}">${badge(method)} <span>${html(path)}</span></a></li>`,
  );
  const all = `<li><a href="#group-${attribute(name)}">all of ${html(name)}</a></li>`;
  return `<details><summary>${html(name)}</summary><ul>${all}${links.join('')}</ul></details>`;
}

function section(name: string, entries: readonly DocumentedOperation[], document: ApiDocument): string {
  const about = document.tags?.find((tag) => tag.name === name)?.description;
  const operations = entries.map((each) => renderEntry(each, document)).join('\n');
  const head = `<h2 id="group-${attribute(name)}">${html(name)}</h2>`;
  return `<section>${head}${about === undefined ? '' : `<p>${prose(about)}</p>`}\n${operations}</section>`;
}

function renderEntry(entry: DocumentedOperation, document: ApiDocument): string {
  const { path, method, operation } = entry;
  const { summary = '', description, parameters = [], security = [], requestBody, responses = {} } = operation;
  const head = `${badge(method)} <code class="path">${html(path)}</code> <span class="summary">${prose(summary)}</span>`;
  const parts = [
    description === undefined ? '' : `<p>${prose(description)}</p>`,
    security.length === 0 ? '<p>Open to everyone.</p>' : '<p>Needs a bearer token or the session cookie.</p>',
    parameters.length === 0
      ? ''
      : `<h3>Parameters</h3><table class="parameters">${parameters.map(parameter).join('')}</table>`,
    requestBody === undefined ? '' : body(requestBody.content, document),
    ...answers(responses, document),
    `<h3>Request</h3><pre class="curl" tabindex="0">${html(curlOf(entry, document))}</pre>`,
  ];
  const data = `data-method="${method.toUpperCase()}" data-path="${html(path)}"`;
  return `<details class="operation" id="${anchorOf(operation)}" ${data}><summary>${head}</summary><div class="body">${parts.join('\n')}</div></details>`;
}

function parameter({ name, in: place, required, description = '', schema = {} }: ShownParameter): string {
  const head = `<th scope="row">${code(name)}${required ? REQUIRED : ''}<br><small>${html(place)}</small></th>`;
  const first = place === 'path' ? schema.enum?.[0] : undefined;
  const filled = first === undefined ? '' : ` data-value="${html(String(first))}"`;
  const data = `data-name="${html(name)}" data-in="${html(place)}"${filled}`;
  return `<tr ${data}>${head}<td>${typeWords(schema)}${description === '' ? '' : `<br>${prose(description)}`}</td></tr>`;
}

function body(content: Content = {}, document: ApiDocument): string {
  return Object.entries(content)
    .map(([type, part]) => {
      const { schema = {} } = part;
      const example = indentedJson(bodyExample(part, document));
      const data = schema.properties?.data;
      const fields = `${fieldRows(schema, document)}${data === undefined ? '' : `<h4>${code('data')}</h4>${fieldRows(data, document)}`}`;
      return [
        `<h3>Body <small>${html(type)}</small></h3>${fields}<h4>Example</h4>`,
        `<pre class="example" tabindex="0" data-type="${html(type)}"${references(schema, document)}>${html(example)}</pre>`,
      ].join('');
    })
    .join('');
}

/** JSON bodies have an example in the document; forms get one here. */
const bodyExample = ({ schema = {}, example }: Content[string], document: ApiDocument): unknown =>
  example ?? exampleValue(schema, document, 'request');

/** For the console, which puts the ids of records in their place. */
function references(schema: ShownSchema, document: ApiDocument): string {
  const needed = neededReferences(resolved(schema, document), document);
  return Object.keys(needed).length === 0 ? '' : ` data-references="${html(JSON.stringify(needed))}"`;
}

/** The successes, each with an example; then every error code. */
function answers(responses: NonNullable<ShownOperation['responses']>, document: ApiDocument): readonly string[] {
  const entries = Object.entries(responses);
  const successes = entries.filter(([, { $ref }]) => $ref === undefined).map((each) => success(each, document));
  const errors = entries.flatMap(([status, { $ref }]) => ($ref === undefined ? [] : [error(status, $ref, document)]));
  return [`<h3>Responses</h3>${successes.join('')}`, `<h3>Errors</h3><table class="errors">${errors.join('')}</table>`];
}

function success([status, response]: readonly [string, Response], document: ApiDocument): string {
  const { description = '', headers = {}, content = {} } = response;
  const described = Object.entries(headers).map(
    ([name, header]) => `${code(name)}: ${prose(header.description ?? '')}`,
  );
  const bodies = Object.entries(content).map(([type, { schema = {} }]) => {
    const about = `<p>${typeWords(schema)} <small>${html(type)}</small></p>`;
    if (!/\bjson$/.test(type)) return about;
    const example = indentedJson(exampleValue(schema, document, 'answer'));
    return `${schema.properties === undefined ? about : fieldRows(schema, document)}<pre tabindex="0">${html(example)}</pre>`;
  });
  const list = described.length === 0 ? '' : `<ul>${described.map((line) => `<li>${line}</li>`).join('')}</ul>`;
  return `<h4><code class="success">${html(status)}</code> ${prose(description)}</h4>${list}${bodies.join('')}`;
}

/** The description of a shared response names its codes: a line for each. */
function error(status: string, ref: string, { components }: ApiDocument): string {
  const { description = '' } = components?.responses?.[nameOfRef(ref)] ?? {};
  const lines = description.split(/ (?=`\w+`: )/).map(prose);
  return `<tr><th scope="row">${code(status === 'default' ? 'any' : status)}</th><td>${lines.join('<br>')}</td></tr>`;
}

const indentedJson = (value: unknown): string => JSON.stringify(value, null, 2);

function curlOf({ path, method, operation }: DocumentedOperation, document: ApiDocument): string {
  const content = Object.entries(operation.requestBody?.content ?? {})[0];
  const lines = [
    `curl${method === 'head' ? ' -I' : method === 'get' ? '' : ` -X ${method.toUpperCase()}`} "$BASE${path}"`,
    ...((operation.security ?? []).length === 0 ? [] : ['  -H "Authorization: Bearer $TOKEN"']),
    ...(content === undefined ? [] : curlData(content[0], bodyExample(content[1], document))),
  ];
  return lines.join(' \\\n');
}

function curlData(type: string, example: unknown): readonly string[] {
  if (type === 'multipart/form-data') return ["  -F 'file=@photo.png'"];
  return [`  -H 'Content-Type: ${type}'`, `  -d '${JSON.stringify(example).replaceAll("'", `'\\''`)}'`];
}
