/** The triggers that write the history of records: for every program, and by the statement that writes. */
import type { Queryable } from '../../database/contract.ts';
import { present } from '../../invariant.ts';
import { HISTORY_ACTOR, NOT_IN_HISTORY, RECORD_HISTORY_TABLE } from '../../schema/model/history-names.ts';
import { ReachedTables } from '../../schema/model/logged-tables.ts';
import type { Collection, Schema } from '../../schema/model/model.ts';
import { shortDigest } from '../../schema/model/stored-names.ts';
import { ident, quotedText, raw, sql } from '../../sql.ts';
import type { Step } from '../step.ts';
import type { TriggerPlan } from './change-triggers.ts';
import { printedCell, type RowTrigger, readFunctions, rowTriggerSteps, type TriggerKind } from './row-triggers.ts';

const KIND: TriggerKind = {
  functions: 'bylaw_past_',
  triggers: [{ name: 'bylaw_history', when: 'AFTER INSERT OR UPDATE OR DELETE', each: 'ROW' }],
};
/** A function takes a hundred arguments. */
const COLUMNS_OF_A_CALL = 40;

/** The steps come after those of the tables. */
export async function historySteps({ db, schema, replaced }: TriggerPlan): Promise<readonly Step[]> {
  const kept = [...schema.collections.values()].filter(({ history }) => history !== undefined);
  const functions = await readFunctions(db, KIND);
  if (kept.length === 0 && functions.size === 0) return [];
  const own = await currentSchema(db);
  const triggers = kept.map((collection) => triggerOf(collection, schema, own));
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

function triggerOf({ name, table, fields }: Collection, schema: Schema, own: string): RowTrigger {
  const reached = new ReachedTables(schema);
  reached.addRecords(name);
  const [{ columns }] = reached.tables as [(typeof reached.tables)[number]];
  const left = new Set(
    [...fields.values()].filter((field) => NOT_IN_HISTORY.has(field.name)).map(({ column }) => column),
  );
  const kept = columns.filter((column) => !left.has(column.name));
  const image = (row: string): string =>
    chunksOf(kept)
      .map(
        (some) =>
          `jsonb_build_object(${some.map((each) => `${quotedText(each.name)}, ${printedCell(each, row)}`).join(', ')})`,
      )
      .join(' || ');
  const id = ident(columns[0]!.name).text;
  const body = `
DECLARE
  was jsonb;
  is_now jsonb;
BEGIN
  IF TG_OP <> 'INSERT' THEN was := ${image('OLD')}; END IF;
  IF TG_OP <> 'DELETE' THEN is_now := ${image('NEW')}; END IF;
  IF was IS NOT DISTINCT FROM is_now THEN RETURN NULL; END IF;
  INSERT INTO ${ident(own, RECORD_HISTORY_TABLE).text} (collection, record, by, before, after)
  VALUES (${quotedText(name)}, CASE TG_OP WHEN 'DELETE' THEN OLD.${id}::text ELSE NEW.${id}::text END,
          nullif(current_setting('${HISTORY_ACTOR}', true), ''), was, is_now);
  RETURN NULL;
END`;
  return { table, name: `${KIND.functions}${shortDigest(table)}`, body };
}

function chunksOf<T>(all: readonly T[]): readonly (readonly T[])[] {
  const chunks: T[][] = [];
  for (let at = 0; at < all.length; at += COLUMNS_OF_A_CALL) chunks.push(all.slice(at, at + COLUMNS_OF_A_CALL));
  return chunks;
}
