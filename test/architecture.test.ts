/** Holds the rooms to the arrows between them, by reading every import, type imports included. */
import { globSync, readFileSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { describe, expect, test } from 'vitest';

const ROOT = resolve(import.meta.dirname, '..');
/** Files right under src/ that every room but grammar and policy may import. */
const LEAVES = [
  'sql',
  'problem',
  'service-status',
  'invariant',
  'thrown',
  'memoized',
  'counted',
  'in-rounds',
  'bounded-map',
  'queued-caller',
  'fair-queue',
  'queue-per-key',
  'with-deadline',
  'optional-package',
  'record-id',
  'refusal',
  'unread-answers',
];
/** Suggests the nearest known name in a message; every room may import it. */
const OPEN_TO_ALL = 'grammar/suggest.ts';

/** The rooms that each room may import. A file right under src/ is a room. */
const ARROWS: Readonly<Record<string, readonly string[]>> = {
  grammar: [],
  sql: [],
  problem: ['client'],
  'service-status': [],
  invariant: [],
  thrown: [],
  memoized: [],
  counted: [],
  'in-rounds': [],
  'bounded-map': [],
  'queued-caller': [],
  'fair-queue': ['queued-caller'],
  'queue-per-key': ['fair-queue'],
  'with-deadline': [],
  'optional-package': [],
  'record-id': [],
  refusal: ['problem'],
  'unread-answers': ['queued-caller'],
  policy: ['grammar', 'sql', 'invariant', 'bounded-map', 'memoized'],
  schema: ['policy', 'grammar', ...LEAVES],
  'folder-lock': ['thrown'],
  database: ['folder-lock', ...LEAVES],
  cluster: ['database', ...LEAVES],
  migrations: ['database', 'schema', 'policy', ...LEAVES],
  records: ['database', 'schema', 'policy', ...LEAVES],
  changes: ['records', 'database', 'schema', 'policy', ...LEAVES],
  webhooks: ['changes', 'records', 'database', 'schema', 'policy', ...LEAVES],
  explain: ['records', 'database', 'schema', 'policy', ...LEAVES],
  workbench: ['explain', 'records', 'database', 'schema', 'policy', ...LEAVES],
  describe: ['schema', 'policy', ...LEAVES],
  auth: ['records', 'database', 'schema', 'policy', ...LEAVES],
  files: ['records', 'database', 'schema', ...LEAVES],
  config: ['schema', ...LEAVES],
  http: ['config', 'changes', 'records', 'database', 'auth', 'files', 'schema', 'policy', ...LEAVES],
  routes: [
    'http',
    'changes',
    'explain',
    'workbench',
    'records',
    'database',
    'auth',
    'files',
    'describe',
    'schema',
    'policy',
    ...LEAVES,
  ],
  service: [
    'config',
    'routes',
    'http',
    'auth',
    'files',
    'describe',
    'webhooks',
    'changes',
    'records',
    'migrations',
    'cluster',
    'database',
    'schema',
    ...LEAVES,
  ],
  cli: [
    'changes',
    'config',
    'service',
    'routes',
    'http',
    'auth',
    'files',
    'describe',
    'explain',
    'workbench',
    'webhooks',
    'records',
    'migrations',
    'cluster',
    'database',
    'folder-lock',
    'schema',
    'policy',
    'grammar',
    ...LEAVES,
  ],
  client: [],
  events: ['client'],
  studio: ['client', 'policy', 'grammar', 'service-status'],
  playground: ['schema', 'policy', 'grammar'],
  exports: ['service', 'config', 'http', 'schema', 'policy', 'grammar', ...LEAVES],
  main: ['config', 'cli', ...LEAVES],
};

/** A package and the only places that may know it. */
const PACKAGES: Readonly<Record<string, readonly string[]>> = {
  chevrotain: ['grammar/'],
  knex: ['src/migrations/'],
  pg: ['src/database/'],
  '@electric-sql/pglite': ['src/database/embedded/'],
  jose: ['src/auth/sessions/access-tokens.ts', 'src/auth/oauth/id-tokens.ts', 'src/auth/providers/apple-secret.ts'],
  grant: ['src/auth/oauth/oauth-grant.ts'],
};

interface Import {
  readonly from: string;
  readonly to: string;
  /** `import type …`: gone at run time. */
  readonly isType: boolean;
}

/** `import … from`, `export … from`; `import '…'`; `import('…')`. */
const IMPORT = new RegExp(
  [
    /(?:^|\n)\s*(?:import|export)\b(?<type> type\b)?[^'";]*?\bfrom\s*'(?<from>[^']+)'/,
    /(?:^|\n)\s*import\s*'(?<bare>[^']+)'/,
    /\bimport\(\s*'(?<dynamic>[^']+)'\s*\)/,
  ]
    .map(({ source }) => source)
    .join('|'),
  'g',
);

const allFiles = globSync(['src/**/*.{ts,tsx}', '{grammar,test,bench,scripts}/**/*.ts'], { cwd: ROOT }).sort();
const files = allFiles.filter((file) => file.startsWith('src/') || file.startsWith('grammar/'));
const allImports: readonly Import[] = allFiles.flatMap((from) =>
  [...readFileSync(join(ROOT, from), 'utf8').matchAll(IMPORT)].map(({ groups }) => ({
    from,
    to: targetOf(from, (groups!.from ?? groups!.bare ?? groups!.dynamic)!),
    isType: groups!.type !== undefined,
  })),
);
const imports = allImports.filter(({ from }) => files.includes(from));
const inside = imports.filter(({ to }) => to.startsWith('src/') || to.startsWith('grammar/'));

function targetOf(from: string, specifier: string): string {
  return specifier.startsWith('.') ? relative(ROOT, resolve(ROOT, dirname(from), specifier)) : specifier;
}

/** `src/database/open-database.ts` → store, `src/sql.ts` → sql, `grammar/parser.ts` → grammar. */
function roomOf(file: string): string {
  const [top, room] = file.split('/') as [string, string];
  return top === 'src' ? room.replace(/\.tsx?$/, '') : top;
}

const say = ({ from, to }: Import): string => `${from} → ${to}`;

describe('the rooms', () => {
  test('the sources have imports to read', () => {
    expect(inside.length).toBeGreaterThan(100);
    expect([...new Set(files.map(roomOf))].filter((room) => !Object.hasOwn(ARROWS, room))).toEqual([]);
  });

  test('rooms import only along the arrows', () => {
    const wrong = inside.filter(({ from, to }) => {
      const [room, other] = [roomOf(from), roomOf(to)];
      return room !== other && to !== OPEN_TO_ALL && !ARROWS[room]!.includes(other);
    });
    expect(wrong.map(say)).toEqual([]);
  });

  test('packages stay in their rooms', () => {
    const wrong = imports.filter(({ from, to }) => {
      const places = Object.hasOwn(PACKAGES, to) ? PACKAGES[to]! : undefined;
      return places !== undefined && !places.some((place) => from.startsWith(place));
    });
    expect(wrong.map(say)).toEqual([]);
  });

  test('policy and grammar run without Node', () => {
    const pure = imports.filter(({ from }) => ['policy', 'grammar'].includes(roomOf(from)));
    expect(pure.filter(({ to }) => to.startsWith('node:') || to === 'knex' || to === 'pg').map(say)).toEqual([]);
  });

  test('no imports form a cycle, tests, benches and scripts included', () => {
    expect(cycles()).toEqual([]);
  });

  test('rooms import no tests, benches and scripts', () => {
    expect(imports.filter(({ to }) => /^(?:test|bench|scripts)\//.test(to)).map(say)).toEqual([]);
  });

  test('the oracle imports only types', () => {
    const own = allImports.filter(({ from }) => from.startsWith('test/oracle/'));
    expect(own.length).toBeGreaterThan(0);
    // Node's own matching of addresses shares no code with ours.
    const known = (to: string): boolean => to.startsWith('test/oracle/') || to === 'node:net';
    expect(own.filter(({ to, isType }) => !isType && !known(to)).map(say)).toEqual([]);
  });

  test('a route imports no route', () => {
    const listed = inside.filter(
      ({ from, to }) => isList(from) && from.startsWith('src/routes/') && to.startsWith('src/routes/'),
    );
    // How every route is written.
    const routes = new Set(listed.map(({ to }) => to).filter((to) => to !== 'src/routes/define-route.ts'));
    const wrong = inside.filter(({ from, to }) => from.startsWith('src/routes/') && !isList(from) && routes.has(to));
    expect(wrong.map(say)).toEqual([]);
  });

  test('no room has utils, helpers, services or common', () => {
    expect(files.filter((file) => /(?:^|\/)(?:utils?|helpers?|services|common)(?:\/|\.ts$)/.test(file))).toEqual([]);
  });
});

/** `routes/auth/index.ts` names the routes of its folder. */
const isList = (file: string): boolean => file.endsWith('/index.ts');

/** Each as the files that import one another in a ring. */
function cycles(): readonly string[] {
  const targets = Map.groupBy(allImports, ({ from }) => from);
  const done = new Set<string>();
  const found: string[] = [];
  const visit = (file: string, path: readonly string[]): void => {
    if (path.includes(file)) found.push([...path.slice(path.indexOf(file)), file].join(' → '));
    if (done.has(file) || path.includes(file)) return;
    for (const { to } of targets.get(file) ?? []) visit(to, [...path, file]);
    done.add(file);
  };
  for (const file of allFiles) visit(file, []);
  return found;
}

test('no constraint is deferred to the commit: a statement fails at once, on every node of a database', () => {
  const mentions = globSync('src/**/*.ts', { cwd: ROOT }).flatMap((file) =>
    [...readFileSync(join(ROOT, file), 'utf8').matchAll(/(?:NOT )?DEFERRABLE|SET CONSTRAINTS[ A-Z]*/g)].map(
      ([found]) => `${file}: ${found}`,
    ),
  );
  // For databases of earlier versions, and adopted tables.
  expect(mentions.toSorted()).toEqual([
    'src/migrations/apply-migration.ts: SET CONSTRAINTS ALL IMMEDIATE',
    'src/migrations/constraint-changes.ts: NOT DEFERRABLE',
  ]);
});

/**
 * `type === 'int'` in any place but the entry of the type. `kind` is the kind of a node of the syntax tree, and `typeof` knows the
 * types of JavaScript.
 */
// `bigint` and `uuid` are left out: they are types of PostgreSQL, too, by which migrations compare columns.
const TYPE_NAMES = 'int|float|datetime|date|time|bytes|decimal';
const ASKS_TYPE_BY_NAME = new RegExp(
  `(?<!typeof .*)(?<!\\bkind )(?:===|!==) '(?:string|bool|${TYPE_NAMES})'|case '(?:${TYPE_NAMES})':|includes\\('(?:${TYPE_NAMES})'\\)`,
);

test('the entry of a field type holds all of it: no other file of src compares with the name of a type', () => {
  const own = files
    .filter((file) => !file.startsWith('src/schema/fields/') && file !== 'src/policy/scalar-types.ts')
    // The types of JSON Schema.
    .filter((file) => !file.startsWith('src/routes/system/docs/'))
    // Controls and columns of a browser, by the names of the answer of the API.
    .filter((file) => !file.startsWith('src/studio/'));
  const found = own.flatMap((file) =>
    readFileSync(join(ROOT, file), 'utf8')
      .split('\n')
      .filter((line) => ASKS_TYPE_BY_NAME.test(line))
      .map((line) => `${file}: ${line.trim()}`),
  );
  expect(found).toEqual([]);
  expect("if (field.type === 'int') {").toMatch(ASKS_TYPE_BY_NAME);
});

/** `ident(collection.table)`, `ident(linkTable)`: a table of records as SQL. */
const NAMES_TABLE = /[iI]dent\((?:[\w.!]+\.)?(?:table|linkTable)\b/;

test('a statement reaches records only through the scope, which adds their tenant', () => {
  const found = files.filter((file) => NAMES_TABLE.test(readFileSync(join(ROOT, file), 'utf8')));
  expect(found.filter((file) => !file.startsWith('src/migrations/')).toSorted()).toEqual([
    'src/cli/transfer/seed.ts', // asks whether a table has rows at all
    'src/cluster/tenant-shard.ts', // names the shards of tables that a scope gave
    'src/policy/analyse/unindexed.ts', // proposes an index
    'src/policy/emit/where.ts', // prints the tenant itself
    'src/policy/stored-rows.ts',
    'src/records/new-ids.ts', // reads the default of a column, and its sequence
    'src/records/page/table-statistics.ts', // ANALYZE
    'src/records/scope.ts',
    'src/records/write/newer-links.ts', // links that the schema does not have, of tables without tenants
    'src/sql.ts', // makes the name
    'src/workbench/advise/measure-index.ts', // copies a sample into a temporary table
    'src/workbench/advise/missing-indexes.ts', // proposes an index
    'src/workbench/decided-by-sql.ts', // makes tables of its own, in memory
    'src/workbench/test/adopted-tables.ts', // makes tables of a database in memory
    'src/workbench/test/fill-world.ts', // empties every table of a database in memory
  ]);
  expect('FROM ${tableIdent(collection.table)}').toMatch(NAMES_TABLE);
  expect('JOIN ${ident(relation.linkTable)}').toMatch(NAMES_TABLE);
});

test('no line is longer than 160 columns', () => {
  const long = allFiles.flatMap((file) =>
    readFileSync(join(ROOT, file), 'utf8')
      .split('\n')
      .flatMap((line, i) => (line.length > 160 ? [`${file}:${i + 1}`] : [])),
  );
  expect(long).toEqual([]);
});
