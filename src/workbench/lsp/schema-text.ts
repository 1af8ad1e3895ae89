/** An open schema file: its issues, and the last state of it that could be read. */

import { memoized } from '../../memoized.ts';
import { readHead } from '../../policy/check/condition-calls.ts';
import { type Action, type Parameter, RULED_ACTIONS } from '../../policy/types.ts';
import { policyPaths } from '../../schema/file/format-policies.ts';
import type { DocumentPath, Region, SchemaIssue } from '../../schema/file/issue.ts';
import { SourceText } from '../../schema/file/source.ts';
import { valueAt } from '../../schema/file/validate.ts';
import { type Environment, parseSchema, readSchemaCatalog, type SchemaCatalog } from '../../schema/load.ts';
import { askedPlace } from '../../schema/model/kept/soft-delete.ts';
import type { Schema } from '../../schema/model/model.ts';
import { placesInStatement } from '../../schema/rules/prove-statements.ts';

/** A policy in the file, and what it may name. */
export interface PolicyText {
  readonly path: DocumentPath;
  readonly text: string;
  /** The start of the text in the string at the path. */
  readonly from: number;
  /** Empty for a named condition. */
  readonly collection: string;
  readonly action: Action;
  readonly parameters?: readonly Parameter[];
  /** The names that it may use. */
  readonly catalog: SchemaCatalog;
}

interface TextState {
  readonly env: Environment;
  /** The text before. */
  readonly former?: SchemaText | undefined;
}

export class SchemaText {
  readonly file: string;
  readonly text: string;
  readonly issues: readonly SchemaIssue[];
  /** Undefined: no text of the file was a schema yet. */
  readonly schema: Schema | undefined;
  // A change is answered with its issues; what only questions need is read when one comes.
  readonly #source: () => SourceText;
  readonly #raw: () => unknown;
  readonly #catalog: () => SchemaCatalog | undefined;

  constructor(file: string, text: string, { env, former }: TextState) {
    this.file = file;
    this.text = text;
    const { schema, issues } = parseSchema(text, file, env);
    this.issues = issues;
    this.schema = schema ?? former?.schema;
    // A schema without errors has its own. A text that referred to the former one would keep all texts.
    const [raw, catalog] = schema === undefined ? [former?.raw, former?.catalog] : [];
    this.#source = memoized(() => new SourceText(text, file));
    this.#raw = memoized(() => this.source.value() ?? raw);
    this.#catalog = memoized(() => readSchemaCatalog(text, file).catalog ?? catalog);
  }

  get source(): SourceText {
    return this.#source();
  }

  /** The content of the file; from the former text while this one is not YAML. */
  get raw(): unknown {
    return this.#raw();
  }

  /** The names that policies may use; the former ones while a declaration is wrong. */
  get catalog(): SchemaCatalog | undefined {
    return this.#catalog();
  }

  /** Every policy of the file, those with errors included. */
  policies(): readonly PolicyText[] {
    return this.#paths().flatMap((path) => this.#policyAt(path) ?? []);
  }

  /** The policy at an offset of the file, and the index in its text. */
  policyAt(offset: number): { readonly policy: PolicyText; readonly index: number } | undefined {
    for (const path of this.#paths()) {
      const index = this.source.indexWithin(path, offset);
      const policy = index === undefined ? undefined : this.#policyAt(path);
      if (index === undefined || policy === undefined) continue;
      if (index >= policy.from) return { policy, index: index - policy.from };
    }
    return undefined;
  }

  /** The paths of policies, and of statements, which may have a condition. */
  #paths(): readonly DocumentPath[] {
    return [...policyPaths(this.raw), ...this.statements().map(({ path }) => path)];
  }

  statements(): readonly { readonly path: DocumentPath; readonly text: string }[] {
    const listed = this.valueAt(['prove']);
    return (Array.isArray(listed) ? listed : []).flatMap((_, i) =>
      ['never', 'always'].flatMap((kind) => {
        const path = ['prove', i, kind];
        const text = this.valueAt(path);
        return typeof text === 'string' ? [{ path, text }] : [];
      }),
    );
  }

  #conditionOfStatement(path: DocumentPath, text: string): PolicyText | undefined {
    const { catalog } = this;
    const { collection = '', action, where } = placesInStatement(text) ?? {};
    if (where === undefined || action === undefined || !catalog?.collections.has(collection)) return undefined;
    return {
      path,
      text: text.slice(where.start, where.end),
      from: where.start,
      ...askedPlace({ collection, action }, catalog),
    };
  }

  #policyAt(path: DocumentPath): PolicyText | undefined {
    const text = this.source.scalarAt(path)?.value;
    const { catalog } = this;
    if (typeof text !== 'string' || catalog === undefined) return undefined;
    if (path[0] === 'prove') return this.#conditionOfStatement(path, text);
    if (path[0] === 'conditions') {
      const head = readHead(String(path[1]), catalog);
      return 'code' in head
        ? undefined
        : { path, text, from: 0, collection: '', action: 'list', parameters: head.parameters, catalog };
    }
    const collection = String(path[1]);
    const key = path.at(-1) === 'where' ? 'read' : path[2] === 'checks' ? 'write' : path[path.indexOf('access') + 1];
    const action = key === 'view' ? 'list' : key === 'write' ? 'update' : RULED_ACTIONS.find((each) => each === key);
    if (action === undefined || !catalog.collections.has(collection)) return undefined;
    return { path, text, from: 0, ...askedPlace({ collection, action }, catalog) };
  }

  /** The string at a path of what the file says. */
  valueAt(path: DocumentPath): unknown {
    return valueAt(this.raw, path);
  }

  /** The place of a part of a policy. */
  regionOf(
    { path, from }: PolicyText,
    { start, end }: { readonly start: number; readonly end: number },
  ): Region | undefined {
    return this.source.placeWithin(path, { start: start + from, end: end + from });
  }
}
