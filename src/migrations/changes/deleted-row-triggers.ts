/** The triggers that keep deleted rows, of every program that deletes them and of every cascade. */
import type { Queryable } from '../../database/contract.ts';
import { present } from '../../invariant.ts';
import { keyOf } from '../../policy/types.ts';
import { linksOf } from '../../schema/model/links.ts';
import type { Collection, Schema } from '../../schema/model/model.ts';
import { DELETED_AT } from '../../schema/model/soft-delete.ts';
import { LINKS_COLUMN, shortDigest } from '../../schema/model/stored-names.ts';
import { ident, quotedText, raw, sql } from '../../sql.ts';
import type { Step } from '../step.ts';
import type { Table } from '../tables.ts';
import type { TriggerPlan } from './change-triggers.ts';
import { type RowTrigger, readFunctions, rowTriggerSteps, type TriggerKind } from './row-triggers.ts';

/** Before the row goes, and with it the links that refer to it. */
const KIND: TriggerKind = {
  functions: 'bylaw_keep_',
  triggers: [{ name: 'bylaw_deleted', when: 'BEFORE DELETE', each: 'ROW' }],
};

/** The steps come after those of the tables. */
export async function deletedRowSteps({ db, schema, wanted, replaced }: TriggerPlan): Promise<readonly Step[]> {
  const kept = [...schema.collections.values()].filter(({ softDelete }) => softDelete !== undefined);
  const functions = await readFunctions(db, KIND);
  if (kept.length === 0 && functions.size === 0) return [];
  const own = await currentSchema(db);
  const triggers = kept.map((collection) =>
    triggerOf(collection, schema, { own, table: wanted.get(collection.table)! }),
  );
  const names = new Set(triggers.map(({ name }) => name));
  const lost = [...functions.keys()].filter((name) => !names.has(name));
  return [
    ...triggers.flatMap((trigger) => {
      const actual = replaced.has(trigger.table) ? undefined : functions.get(trigger.name);
      return rowTriggerSteps(trigger, { kind: KIND, actual, own });
    }),
    ...lost.map((name) => ({ sql: sql`DROP FUNCTION IF EXISTS ${ident(name)}() CASCADE`, isExtra: true })),
  ];
}

async function currentSchema(db: Queryable): Promise<string> {
  const [row] = await db.rows(raw('SELECT current_schema()'));
  return present(row?.[0], 'the current schema');
}

interface OwnTable {
  readonly own: string;
  readonly table: Table;
}

function triggerOf(collection: Collection, schema: Schema, { own, table }: OwnTable): RowTrigger {
  const key = ident(keyOf(collection).column).text;
  const kept = ident(own, collection.softDelete!.table).text;
  const columns = table.columns.map(({ name }) => ident(name).text);
  const links = linksOf(collection, schema).map(
    ({ name, relation: { linkTable }, ownColumn, otherColumn }) =>
      `${quotedText(name)}, (SELECT coalesce(jsonb_agg(l.${ident(otherColumn).text}::text), '[]')
      FROM ${ident(own, linkTable).text} l WHERE l.${ident(ownColumn).text} = OLD.${key})`,
  );
  const body = `
BEGIN
  DELETE FROM ${kept} WHERE ${key} = OLD.${key};
  INSERT INTO ${kept} (${[...columns, ident(DELETED_AT).text, ident(LINKS_COLUMN).text].join(', ')})
  VALUES (${columns.map((column) => `OLD.${column}`).join(', ')}, now(), jsonb_build_object(${links.join(', ')}));
  RETURN OLD;
END`;
  return { table: collection.table, name: `${KIND.functions}${shortDigest(collection.table)}`, body };
}
