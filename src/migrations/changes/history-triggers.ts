/** The triggers that write the history of records: for every program, and by the statement that writes. */
import { HISTORY_ACTOR, NOT_IN_HISTORY, RECORD_HISTORY_TABLE } from '../../schema/model/kept/history-names.ts';
import { ReachedTables } from '../../schema/model/logged-tables.ts';
import type { Collection, Schema } from '../../schema/model/model.ts';
import { shortDigest } from '../../schema/model/stored-names.ts';
import { ident, quotedText } from '../../sql.ts';
import type { Step } from '../step.ts';
import type { TriggerPlan } from './change-triggers.ts';
import { printedCell, type RowTrigger, type TriggerKind } from './row-triggers.ts';

export const HISTORY_TRIGGERS: TriggerKind = {
  functions: 'bylaw_past_',
  triggers: [{ name: 'bylaw_history', when: 'AFTER INSERT OR UPDATE OR DELETE', each: 'ROW' }],
};
/** A function takes a hundred arguments. */
const COLUMNS_OF_A_CALL = 40;

/** The steps come after those of the tables. */
export function historySteps({ schema, known }: TriggerPlan): readonly Step[] {
  const kept = [...schema.collections.values()].filter(({ history }) => history !== undefined);
  return known.stepsTo(
    HISTORY_TRIGGERS,
    kept.map((collection) => triggerOf(collection, schema, known.own)),
  );
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
  return { table, name: `${HISTORY_TRIGGERS.functions}${shortDigest(table)}`, body };
}

function chunksOf<T>(all: readonly T[]): readonly (readonly T[])[] {
  const chunks: T[][] = [];
  for (let at = 0; at < all.length; at += COLUMNS_OF_A_CALL) chunks.push(all.slice(at, at + COLUMNS_OF_A_CALL));
  return chunks;
}
