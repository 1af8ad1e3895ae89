/** `bylaw tenant export | import | delete`: one tenant's records, memberships and files. Each goes on where it was interrupted. */
import { createReadStream, createWriteStream, existsSync, readFileSync, writeFileSync } from 'node:fs';
import { open, rename, truncate } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { createInterface } from 'node:readline';
import { pipeline } from 'node:stream/promises';
import { ConfigError, unknownName } from '../../config.ts';
import { StoreError } from '../../database/contract.ts';
import { readIdentity } from '../../files/file-tables.ts';
import { openStorage } from '../../files/storage/open-storage.ts';
import { type Storage, storeBytes } from '../../files/storage/storage.ts';
import { datetimeOf, parseUuid } from '../../policy/values.ts';
import { ImportRejected } from '../../records/transfer/import-records.ts';
import type { SourceRecord } from '../../records/transfer/read-record.ts';
import { deleteTenant, type PartOfTenant } from '../../records/transfer/tenant-delete.ts';
import {
  findTenant,
  type Tenant,
  type TenantPart,
  tenantCollections,
  tenantFromId,
} from '../../records/transfer/tenant-parts.ts';
import { exportPart, importPart, linkPart } from '../../records/transfer/tenant-transfer.ts';
import { type Arguments, type CommandGroup, DATABASE_SETTINGS, type Io } from '../support/command.ts';
import { makeGivenFolder } from '../support/given-file.ts';
import { type DatabaseUse, type OpenDatabase, openMigratedDatabase } from '../support/workspace.ts';
import { ndjsonReader } from './formats/ndjson.ts';

const settings = [...DATABASE_SETTINGS, 'files'] as const;

export const command: CommandGroup = {
  name: 'tenant',
  summary: 'exports, imports or deletes the records of one tenant',
  commands: [
    {
      name: 'tenant export',
      summary: 'writes the records and files of a tenant into a folder; again, it goes on where it stopped',
      positionals: ['ID', 'DIR'],
      settings,
      flags: {},
      run: runExport,
    },
    {
      name: 'tenant import',
      summary: 'writes the tenant of such a folder into the database; records that are there already stay',
      positionals: ['DIR'],
      settings,
      flags: {},
      run: runImport,
    },
    {
      name: 'tenant delete',
      summary: 'deletes a tenant with all its records, 1,000 at a time; its people and their accounts stay',
      positionals: ['ID'],
      settings: DATABASE_SETTINGS,
      flags: { yes: { about: 'confirms it: nothing brings the records back but an export' } },
      run: runDelete,
    },
  ],
};

interface TenantManifest {
  readonly collection: string;
  readonly id: string;
}

const TENANT_MANIFEST = 'tenant.json';
const fileOf = (folder: string, { collection }: TenantPart): string => join(folder, `${collection.name}.ndjson`);

// ---------------------------------------------------------------- export

async function runExport(args: Arguments, io: Io): Promise<number> {
  const [id = '', given = ''] = args.positionals;
  const folder = resolve(io.cwd, given);
  return withTenant({ args, io, writes: false }, id, async (opened, tenant) => {
    makeGivenFolder(join(given, 'files'), io);
    const manifest: TenantManifest = { collection: tenant.parts[0]!.collection.name, id };
    writeFileSync(join(folder, TENANT_MANIFEST), `${JSON.stringify(manifest)}\n`);
    const files = new Set<string>();
    for (const part of tenant.parts) {
      const records = await exportToFile(opened, folder, { tenant, part });
      for await (const file of filesOf(folder, part)) files.add(file);
      io.stderr.write(`${part.collection.name}: ${records} records\n`);
    }
    await exportFiles(opened, folder, [...files]);
    io.stderr.write(`files: ${files.size}\n`);
    return 0;
  });
}

/** Returns the number of records that this run wrote. */
async function exportToFile({ db, schema }: OpenDatabase, folder: string, { tenant, part }: PartOfTenant) {
  const file = fileOf(folder, part);
  const after = await lastIdIn(file);
  let records = 0;
  const lines = async function* (): AsyncGenerator<string> {
    for await (const json of exportPart(db, schema, { tenant, part, after })) {
      records++;
      yield `${json}\n`;
    }
  };
  await pipeline(lines, createWriteStream(file, { flags: 'a' }));
  return records;
}

/** The id of the last whole line; a line that an interruption left unfinished is removed. */
async function lastIdIn(file: string): Promise<string | undefined> {
  if (!existsSync(file)) return undefined;
  let bytes = 0;
  let last: string | undefined;
  for await (const line of createInterface({ input: createReadStream(file) })) {
    const id = idInLine(line);
    if (id === undefined) break;
    last = id;
    bytes += Buffer.byteLength(line) + 1;
  }
  await truncate(file, bytes);
  return last;
}

function idInLine(line: string): string | undefined {
  try {
    return (JSON.parse(line) as { readonly id: string }).id;
  } catch {
    return undefined;
  }
}

async function* filesOf(folder: string, part: TenantPart): AsyncGenerator<string> {
  const names = [...part.collection.relations.values()].flatMap(({ kind, collection, name }) =>
    kind === 'belongs_to' && collection === 'files' ? [name] : [],
  );
  if (names.length === 0) return;
  for await (const line of createInterface({ input: createReadStream(fileOf(folder, part)) })) {
    const record = JSON.parse(line) as Readonly<Record<string, string | null>>;
    for (const name of names) if (typeof record[name] === 'string') yield record[name];
  }
}

const filePart = ({ schema }: OpenDatabase): TenantPart => ({
  collection: schema.collections.get('files')!,
  column: 'id',
});

async function exportFiles(opened: OpenDatabase, folder: string, ids: readonly string[]): Promise<void> {
  const storage = await storageOf(opened);
  const lines = async function* (): AsyncGenerator<string> {
    for (const id of ids) {
      const tenant = { id, parts: [] };
      for await (const json of exportPart(opened.db, opened.schema, { tenant, part: filePart(opened) }))
        yield `${json}\n`;
      const target = join(folder, 'files', id);
      const bytes = existsSync(target) ? undefined : await storage.open(id);
      if (bytes !== undefined) await writeWhole(target, bytes);
    }
  };
  await pipeline(lines, createWriteStream(join(folder, 'files.ndjson')));
}

/** An interrupted copy has another name. */
async function writeWhole(target: string, bytes: AsyncIterable<Buffer>): Promise<void> {
  const handle = await open(`${target}.part`, 'w');
  try {
    for await (const chunk of bytes) await handle.write(chunk);
    await handle.sync();
  } finally {
    await handle.close();
  }
  await rename(`${target}.part`, target);
}

async function storageOf({ db, config }: OpenDatabase): Promise<Storage> {
  const { storeId } = await readIdentity(db);
  return openStorage(config, storeId);
}

// ---------------------------------------------------------------- import

async function runImport(args: Arguments, io: Io): Promise<number> {
  const [given = ''] = args.positionals;
  const folder = resolve(io.cwd, given);
  const manifest = readManifest(folder, given);
  const opened = await openMigratedDatabase(args, io, { writes: true });
  try {
    const { db, schema } = opened;
    const names = tenantCollections(schema);
    if (!names.includes(manifest.collection))
      throw new ConfigError([unknownName('collection of tenants', manifest.collection, names)]);
    const tenant = tenantFromId(schema, manifest.collection, manifest.id);
    await importFiles(opened, folder);
    const request = (part: TenantPart) => ({
      ...{ schema, tenant, part, now: datetimeOf(new Date()) },
      records: recordsOf(fileOf(folder, part)),
    });
    for (const part of tenant.parts)
      io.stderr.write(`${part.collection.name}: ${await importPart(db, request(part))} new records\n`);
    for (const part of tenant.parts) await linkPart(db, request(part));
    return 0;
  } catch (error) {
    if (error instanceof ImportRejected) io.stderr.write(`${error.lines(given).join('\n')}\n`);
    else if (error instanceof StoreError && error.kind === 'foreign_key') io.stderr.write(`bylaw: ${MISSING}\n`);
    else throw error;
    return 1;
  } finally {
    await opened.close();
  }
}

const MISSING =
  'a record refers to one that is not in this database, such as a user; import those first (`bylaw import users FILE`)';

/** Throws ConfigError for another folder than that of an export. */
function readManifest(folder: string, given: string): TenantManifest {
  const file = join(folder, TENANT_MANIFEST);
  if (!existsSync(file)) throw new ConfigError([`${given}: expected the folder of a tenant, with ${TENANT_MANIFEST}`]);
  try {
    const { collection, id } = JSON.parse(readFileSync(file, 'utf8')) as TenantManifest;
    const tenant = parseUuid(id);
    if (tenant !== undefined) return { collection, id: tenant };
  } catch (error) {
    if (!(error instanceof SyntaxError || error instanceof TypeError)) throw error;
  }
  throw new ConfigError([
    `${given}/${TENANT_MANIFEST}: expected the \`collection\` and the \`id\` of a tenant, as JSON`,
  ]);
}

async function* recordsOf(file: string): AsyncGenerator<SourceRecord> {
  if (existsSync(file)) yield* ndjsonReader(createReadStream(file, 'utf8'));
}

/** The bytes of a file before its record, which promises them. */
async function importFiles(opened: OpenDatabase, folder: string): Promise<void> {
  const storage = await storageOf(opened);
  const { db, schema } = opened;
  const part = filePart(opened);
  for await (const record of recordsOf(join(folder, 'files.ndjson'))) {
    // Another text would be a path; the import of its record rejects it.
    const id = parseUuid(String(record.members?.get('id'))) ?? '';
    const source = join(folder, 'files', id);
    if (id !== '' && existsSync(source) && (await storage.size(id)) === undefined)
      await storeBytes(await storage.incoming(id), readFileSync(source));
    const records = (async function* () {
      yield record;
    })();
    await importPart(db, { schema, tenant: { id, parts: [] }, part, records, now: datetimeOf(new Date()) });
  }
}

// ---------------------------------------------------------------- delete

async function runDelete(args: Arguments, io: Io): Promise<number> {
  const [id = ''] = args.positionals;
  if (!args.has('yes')) throw new ConfigError([`this deletes every record of ${id}; expected --yes to confirm it`]);
  return withTenant({ args, io, writes: true }, id, async ({ db, schema }, tenant) => {
    const onProgress = (collection: string, records: number): void =>
      void io.stderr.write(`${collection}: ${records} records deleted\n`);
    await deleteTenant(db, schema, { tenant, onProgress });
    return 0;
  });
}

interface TenantCall extends DatabaseUse {
  readonly args: Arguments;
  readonly io: Io;
}

/** Throws ConfigError for an unknown tenant. */
async function withTenant(
  { args, io, ...use }: TenantCall,
  id: string,
  work: (opened: OpenDatabase, tenant: Tenant) => Promise<number>,
): Promise<number> {
  const canonical = parseUuid(id);
  if (canonical === undefined) throw new ConfigError([`expected the id of a tenant, found ${id}`]);
  const opened = await openMigratedDatabase(args, io, use);
  try {
    const tenant = await findTenant(opened.db, opened.schema, canonical);
    if (tenant !== undefined) return await work(opened, tenant);
    const names = tenantCollections(opened.schema);
    throw new ConfigError([
      names.length === 0
        ? 'the schema has no collection with `distribute: { by }`, so there are no tenants'
        : `no record of ${names.map((name) => `\`${name}\``).join(', ')} has the id ${id}`,
    ]);
  } finally {
    await opened.close();
  }
}
