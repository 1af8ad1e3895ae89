/** The language server of bylaw.yaml and *.policy.yaml: the methods of the protocol, and the open files. */
import { dirname, join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { ErrorCodes, ResponseError } from 'vscode-jsonrpc/node';
import type { SchemaIssue } from '../../schema/file/issue.ts';
import type { Environment } from '../../schema/load.ts';
import { readTests } from '../test/read-tests.ts';
import type { ResultsDocument } from '../test/results-document.ts';
import { type CompletionItem, completeSchema, completeTests, resolvedItem } from './complete-text.ts';
import { type TestUse, testNameUses } from './find-names.ts';
import { hoverAt } from './hover-text.ts';
import { definitionAt, formatEdits, referencesAt, renameable, renameInTests, renameMember } from './navigate.ts';
import { foldsOf, outlineOf } from './outline.ts';
import { SchemaText } from './schema-text.ts';
import { hoverInTests, renameableInTests, renameTestName } from './test-names.ts';
import { codeLenses, TEST_COMMAND } from './tested-rules.ts';
import { rangeOfRegion, type TextEdit, type TextPosition, type TextRange } from './text-positions.ts';

/** The files that are not open. */
interface LanguageFiles {
  /** Undefined: there is none. */
  read(file: string): string | undefined;
  /** The `*.policy.yaml` of a folder. */
  testsIn(folder: string): readonly string[];
}
export interface LanguageServerOptions {
  readonly files: LanguageFiles;
  readonly env: Environment;
  readonly version: string;
  /** Sends a notification to the client. */
  notify(method: string, params: object): void;
  /** Asks the client to request code lenses again. */
  refreshLenses(): void;
  /** Runs the saved tests beside a schema file, with mutants. Throws ConfigError. */
  runTests(schemaFile: string): Promise<ResultsDocument>;
}

const CAPABILITIES = {
  positionEncoding: 'utf-16',
  textDocumentSync: { openClose: true, change: 1 },
  completionProvider: { triggerCharacters: ['.', '@', '"', ' ', '('], resolveProvider: true },
  hoverProvider: true,
  definitionProvider: true,
  referencesProvider: true,
  renameProvider: { prepareProvider: true },
  documentSymbolProvider: true,
  foldingRangeProvider: true,
  documentFormattingProvider: true,
  codeActionProvider: { codeActionKinds: ['quickfix'] },
  codeLensProvider: {},
  executeCommandProvider: { commands: [TEST_COMMAND] },
};
const SEVERITIES: Readonly<Record<SchemaIssue['severity'], number>> = { error: 1, warning: 2, note: 3 };
/** Warnings about rules that decide nothing, which editors show faded. */
const UNNECESSARY = new Set(['idle_rule', 'intended_unneeded']);
/** The schema of a folder of tests. */
const SCHEMA_NAME = 'bylaw.yaml';
const isTestFile = (uri: string): boolean => /\.policy\.ya?ml$/.test(uri);

/** A schema has its usual name, or collections. */
const isSchemaText = (uri: string, text: string): boolean =>
  uri.endsWith(`/${SCHEMA_NAME}`) || /^["']?collections["']?\s*:/m.test(text) || text.trimStart().startsWith('{');

interface MethodParams {
  readonly textDocument: { readonly uri: string; readonly text?: string };
  readonly position: TextPosition;
  readonly range: TextRange;
  readonly newName: string;
  readonly contentChanges: readonly { readonly text: string }[];
  readonly command: string;
  readonly arguments?: readonly string[];
}
interface ClientParams {
  readonly capabilities?: { readonly workspace?: { readonly codeLens?: { readonly refreshSupport?: boolean } } };
}
/** A name of a test file; `uri` and `range` are the protocol's location. */
type LocatedUse = Pick<TestUse, 'range' | 'isDeclaration'> & { readonly uri: string };
type Method = (params: MethodParams) => unknown;

export class LanguageServer {
  readonly #options: LanguageServerOptions;
  readonly #texts = new Map<string, string>();
  readonly #schemas = new Map<string, SchemaText>();
  readonly #testIssues = new Map<string, readonly SchemaIssue[]>();
  /** The latest runs of tests, by schema. */
  readonly #results = new Map<string, ResultsDocument>();
  #canRefresh = false;
  #state: 'new' | 'ready' | 'down' | 'ended' = 'new';
  /** True: the client shut the server down before it ended the connection. */
  wasShutDown = false;

  constructor(options: LanguageServerOptions) {
    this.#options = options;
  }

  /** True: the connection ends. */
  get isEnded(): boolean {
    return this.#state === 'ended';
  }

  readonly #methods: Readonly<Record<string, Method>> = {
    'textDocument/completion': (params) => this.#completion(params),
    'textDocument/hover': (params) =>
      this.#onTestText(params, (text, schema) => hoverInTests(text, params.position, schema)) ??
      this.#onSchema(params, (file) => hoverAt(file, params.position)),
    'completionItem/resolve': (params) => resolvedItem(params as unknown as CompletionItem),
    'textDocument/definition': (params) =>
      this.#onTests(params, (uses) => uses.find(({ isDeclaration }) => isDeclaration)) ??
      this.#onSchema(params, (file) => located(params, definitionAt(file, params.position))),
    'textDocument/references': (params) =>
      this.#onTests(params, (uses) => uses) ??
      this.#onSchema(params, (file) => referencesAt(file, params.position).map((range) => located(params, range))),
    'textDocument/codeLens': (params) =>
      this.#onSchema(params, (file) =>
        codeLenses(file, params.textDocument.uri, this.#results.get(params.textDocument.uri)),
      ),
    'workspace/executeCommand': (params) => this.#execute(params),
    'textDocument/prepareRename': (params) =>
      this.#onTestText(params, (text, schema) => renameableInTests(text, params.position, schema)) ??
      this.#onSchema(params, (file) => renameable(file, params.position)),
    'textDocument/rename': (params) =>
      this.#onTestText(params, (text, schema) => renamedTests(text, params, schema)) ??
      this.#onSchema(params, (file) => this.#rename(file, params)),
    'textDocument/documentSymbol': (params) => this.#onSchema(params, outlineOf),
    'textDocument/foldingRange': (params) => this.#onSchema(params, foldsOf),
    'textDocument/formatting': (params) => this.#onSchema(params, ({ text, file }) => formatEdits(text, file)),
    'textDocument/codeAction': (params) => this.#fixes(params),
  };

  /** A result, or a promise of one. Throws ResponseError. */
  request(method: string, params: unknown): unknown {
    if (method === 'initialize') {
      this.#state = 'ready';
      this.#canRefresh =
        (params as ClientParams | undefined)?.capabilities?.workspace?.codeLens?.refreshSupport === true;
      return { capabilities: CAPABILITIES, serverInfo: { name: 'bylaw', version: this.#options.version } };
    }
    if (this.#state === 'new')
      throw new ResponseError(ErrorCodes.ServerNotInitialized, 'the client has not sent `initialize`');
    if (this.#state !== 'ready') throw new ResponseError(ErrorCodes.InvalidRequest, 'the server is shut down');
    if (method === 'shutdown') {
      this.#state = 'down';
      this.wasShutDown = true;
      return null;
    }
    const known = Object.hasOwn(this.#methods, method) ? this.#methods[method] : undefined;
    if (known === undefined) throw new ResponseError(ErrorCodes.MethodNotFound, `unknown method ${method}`);
    return known(params as MethodParams);
  }

  notify(method: string, params: unknown): void {
    if (method === 'exit') this.#state = 'ended';
    if (this.#state !== 'ready') return;
    const { textDocument, contentChanges } = (params ?? {}) as MethodParams;
    if (method === 'textDocument/didOpen') this.#set(textDocument.uri, textDocument.text ?? '');
    else if (method === 'textDocument/didChange')
      this.#set(textDocument.uri, contentChanges.at(-1)?.text ?? this.#texts.get(textDocument.uri) ?? '');
    else if (method === 'textDocument/didClose') this.#close(textDocument.uri);
  }

  // -------------------------------------------------------------- files

  #set(uri: string, text: string): void {
    this.#texts.set(uri, text);
    if (isTestFile(uri)) {
      this.#publishTests(uri, text);
      return;
    }
    if (!isSchemaText(uri, text)) {
      // Editors send every YAML file.
      if (this.#schemas.delete(uri)) this.#publish(uri, []);
      return;
    }
    const schema = new SchemaText(fileOfUri(uri), text, { env: this.#options.env, former: this.#schemas.get(uri) });
    this.#schemas.set(uri, schema);
    this.#publish(uri, schema.issues);
    for (const [other, tests] of this.#texts)
      if (isTestFile(other) && schemaUriOf(other) === uri) this.#publishTests(other, tests);
  }

  #close(uri: string): void {
    this.#texts.delete(uri);
    this.#testIssues.delete(uri);
    this.#schemas.delete(uri);
    this.#publish(uri, []);
  }

  /** The schema beside a test file, open or not. */
  #schemaOfTests(uri: string): SchemaText | undefined {
    const schemaUri = schemaUriOf(uri);
    const open = this.#schemas.get(schemaUri);
    if (open !== undefined) return open;
    const file = fileOfUri(schemaUri);
    const text = this.#options.files.read(file);
    return text === undefined ? undefined : new SchemaText(file, text, { env: this.#options.env });
  }

  #onSchema<T>({ textDocument }: Pick<MethodParams, 'textDocument'>, work: (file: SchemaText) => T): T | null {
    const file = this.#schemas.get(textDocument.uri);
    return file === undefined ? null : (work(file) ?? null);
  }

  /** The names of a test file. Undefined: the file is a schema. */
  #onTests<T>(params: MethodParams, work: (uses: readonly LocatedUse[]) => T) {
    const { uri } = params.textDocument;
    return this.#onTestText(params, (text, schema) => {
      const uses = testNameUses(text, params.position, schema);
      return work(uses.map(({ range, isDeclaration }) => ({ uri, range, isDeclaration })));
    });
  }

  #onTestText<T>({ textDocument: { uri } }: MethodParams, work: (text: string, schema: SchemaText) => T) {
    const text = this.#texts.get(uri);
    if (text === undefined || !isTestFile(uri)) return undefined;
    const schema = this.#schemaOfTests(uri);
    return (schema && work(text, schema)) ?? null;
  }

  async #execute({ command, arguments: [uri] = [] }: MethodParams): Promise<null> {
    if (command !== TEST_COMMAND || uri === undefined)
      throw new ResponseError(ErrorCodes.InvalidParams, `unknown command ${command}`);
    const { runTests, refreshLenses } = this.#options;
    this.#results.set(uri, await runTests(fileOfUri(uri)));
    if (this.#canRefresh) refreshLenses();
    return null;
  }

  // -------------------------------------------------------------- diagnostics

  #publishTests(uri: string, text: string): void {
    const schema = this.#schemaOfTests(uri)?.schema;
    const issues = schema === undefined ? [] : readTests(text, fileOfUri(uri), schema).issues;
    this.#testIssues.set(uri, issues);
    this.#publish(uri, issues);
  }

  #publish(uri: string, issues: readonly SchemaIssue[]): void {
    const diagnostics = issues.map((issue) => ({
      range: rangeOfRegion(issue),
      severity: SEVERITIES[issue.severity],
      code: issue.code,
      source: 'bylaw',
      message: issue.message,
      ...(UNNECESSARY.has(issue.code) && { tags: [1] }),
    }));
    this.#options.notify('textDocument/publishDiagnostics', { uri, diagnostics });
  }

  #fixes({ textDocument: { uri }, range }: MethodParams): readonly object[] {
    const issues = this.#schemas.get(uri)?.issues ?? this.#testIssues.get(uri) ?? [];
    return issues.flatMap(({ fix, ...issue }) => {
      const at = rangeOfRegion(issue);
      if (fix === undefined || at.end.line < range.start.line || at.start.line > range.end.line) return [];
      const edit = { range: rangeOfRegion(fix), newText: fix.replacement };
      const diagnostic = {
        range: at,
        severity: SEVERITIES[issue.severity],
        code: issue.code,
        source: 'bylaw',
        message: issue.message,
      };
      const title = `replace by \`${fix.replacement}\``;
      return [
        { title, kind: 'quickfix', diagnostics: [diagnostic], isPreferred: true, edit: { changes: { [uri]: [edit] } } },
      ];
    });
  }

  // -------------------------------------------------------------- questions about a place

  #completion({ textDocument: { uri }, position }: MethodParams): readonly object[] {
    const text = this.#texts.get(uri);
    if (text === undefined) return [];
    if (!isTestFile(uri))
      return this.#onSchema({ textDocument: { uri } }, (file) => completeSchema(file, position)) ?? [];
    const schema = this.#schemaOfTests(uri);
    return schema === undefined ? [] : completeTests(text, position, schema);
  }

  /** The edits in the schema and in the tests of its folder. */
  #rename(file: SchemaText, { textDocument: { uri }, position, newName }: MethodParams): object | null {
    const made = renamedOrInvalid(() => renameMember(file, position, newName));
    if (made === undefined) return null;
    const changes: Record<string, readonly TextEdit[]> = { [uri]: made.edits };
    const folder = dirname(file.file);
    for (const tests of this.#options.files.testsIn(folder)) {
      const testUri = pathToFileURL(join(folder, tests)).href;
      const text = this.#texts.get(testUri) ?? this.#options.files.read(join(folder, tests));
      const edits = text === undefined ? [] : renameInTests(text, made.renamed, newName);
      if (edits.length > 0) changes[testUri] = edits;
    }
    return { changes };
  }
}

/** An URI of another scheme, such as of an unsaved file, names itself. */
const fileOfUri = (uri: string): string => (uri.startsWith('file:') ? fileURLToPath(uri) : uri);
const schemaUriOf = (uri: string): string => new URL(SCHEMA_NAME, uri).href;

const located = ({ textDocument: { uri } }: MethodParams, range: TextRange | undefined) => range && { uri, range };

function renamedTests(text: string, params: MethodParams, schema: SchemaText): object | undefined {
  const edits = renamedOrInvalid(() => renameTestName(text, params, schema));
  return edits && { changes: { [params.textDocument.uri]: edits } };
}

/** Throws ResponseError for a name that cannot be. */
function renamedOrInvalid<T>(work: () => T): T {
  try {
    return work();
  } catch (error) {
    if (error instanceof RangeError) throw new ResponseError(ErrorCodes.InvalidParams, error.message);
    throw error;
  }
}
