/** The triggers that keep deleted rows, of every program that deletes them and of every cascade. */
import { keyOf } from '../../policy/types.ts';
import { linksOf } from '../../schema/model/kept/link-sides.ts';
import { DELETED_AT } from '../../schema/model/kept/soft-delete.ts';
import type { Collection } from '../../schema/model/model.ts';
import { LINKS_COLUMN, shortDigest } from '../../schema/model/stored-names.ts';
import { ident, quotedText } from '../../sql.ts';
import type { Step } from '../step.ts';
import type { TriggerPlan } from './change-triggers.ts';
import { inOrderOfNames } from './extra-columns.ts';
import type { RowTrigger, TriggerKind } from './row-triggers.ts';

/** The trigger runs before the row goes, and with it the links that refer to it. */
export const DELETED_ROW_TRIGGERS: TriggerKind = {
  functions: 'bylaw_keep_',
  triggers: [{ name: 'bylaw_deleted', when: 'BEFORE DELETE', each: 'ROW' }],
};

/** The steps come after those of the tables. */
export function deletedRowSteps(plan: TriggerPlan): readonly Step[] {
  const { schema, known } = plan;
  // The statements of the service keep the rows of tables that are divided by tenant: a cluster runs no trigger of theirs.
  const kept = [...schema.collections.values()].filter(
    ({ softDelete, tenantLayout }) => softDelete !== undefined && tenantLayout?.kind !== 'by',
  );
  return known.stepsTo(
    DELETED_ROW_TRIGGERS,
    kept.map((collection) => deletedRowTriggerOf(collection, plan)),
  );
}

function deletedRowTriggerOf(collection: Collection, plan: TriggerPlan): RowTrigger {
  const { schema } = plan;
  const { own } = plan.known;
  const key = ident(keyOf(collection).column).text;
  const kept = ident(own, collection.softDelete!.table).text;
  const columns = columnsOfBoth(collection, plan).map(({ name }) => ident(name).text);
  const links = inOrderOfNames([
    ...linksOf(collection, schema).map((side) => ({ ...side, linkTable: side.relation.linkTable })),
    ...plan.extraLinks.filter(({ table }) => table === collection.table),
  ]).map(
    ({ name, linkTable, ownColumn, otherColumn }) =>
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
  return { table: collection.table, name: `${DELETED_ROW_TRIGGERS.functions}${shortDigest(collection.table)}`, body };
}

/** The columns that living and deleted rows have. */
function columnsOfBoth({ table, softDelete }: Collection, { wanted, extra }: TriggerPlan) {
  const ofDeleted = new Set(extra.get(softDelete!.table)?.map(({ name }) => name));
  const more = (extra.get(table) ?? []).filter(({ name }) => ofDeleted.has(name));
  return inOrderOfNames([...wanted.get(table)!.columns, ...more]);
}
