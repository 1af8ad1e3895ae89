/** The triggers that write the history of records: for every program, and by the statement that writes. */
import { COLUMNS_OF_A_CALL, historyColumnsOf } from '../../schema/model/kept/history.ts';
import { HISTORY_ACTOR, NOT_IN_HISTORY, RECORD_HISTORY_TABLE } from '../../schema/model/kept/history-names.ts';
import type { Collection } from '../../schema/model/model.ts';
import { shortDigest } from '../../schema/model/stored-names.ts';
import { ident, quotedText } from '../../sql.ts';
import type { Step } from '../step.ts';
import type { TriggerPlan } from './change-triggers.ts';
import { inOrderOfNames } from './extra-columns.ts';
import { printedCell, type RowTrigger, type TriggerKind } from './row-triggers.ts';

export const HISTORY_TRIGGERS: TriggerKind = {
  functions: 'bylaw_past_',
  triggers: [{ name: 'bylaw_history', when: 'AFTER INSERT OR UPDATE OR DELETE', each: 'ROW' }],
};

/** The steps come after those of the tables. */
export function historySteps(plan: TriggerPlan): readonly Step[] {
  const { schema, known } = plan;
  // An entry in a table of its own is written by the statements of the service: a cluster runs no trigger of such tables.
  const kept = [...schema.collections.values()].filter(
    ({ history }) => history !== undefined && history.table === undefined,
  );
  return known.stepsTo(
    HISTORY_TRIGGERS,
    kept.map((collection) => historyTriggerOf(collection, plan)),
  );
}

function historyTriggerOf(collection: Collection, { schema, known, extra }: TriggerPlan): RowTrigger {
  const { name, table } = collection;
  const { own } = known;
  const { id: key, columns } = historyColumnsOf(schema, collection);
  const more = (extra.get(table) ?? []).filter((each) => !NOT_IN_HISTORY.has(each.name));
  const kept = inOrderOfNames([...columns, ...more]);
  const image = (row: string): string =>
    chunksOf(kept)
      .map(
        (some) =>
          `jsonb_build_object(${some.map((each) => `${quotedText(each.name)}, ${printedCell(each, row)}`).join(', ')})`,
      )
      .join(' || ');
  const id = ident(key).text;
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
