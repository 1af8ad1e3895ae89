/**
 * Gives the links of deleted records the names that the tables of links have now: a restore finds the links by the name of
 * the table.
 */
import type { Queryable } from '../../database/contract.ts';
import { linkSideName, linksOf } from '../../schema/model/kept/link-sides.ts';
import type { Schema } from '../../schema/model/model.ts';
import { LINKS_COLUMN } from '../../schema/model/stored-names.ts';
import { ident, join, sql } from '../../sql.ts';
import type { Renamed } from '../renamed-tables.ts';
import type { Step } from '../step.ts';
import { stringLiteral } from '../tables.ts';
import { renamedMember, rewriteSteps } from './rewritten-rows.ts';

interface LinkRenaming {
  readonly db: Queryable;
  readonly schema: Schema;
  readonly renamed: Renamed;
  /** The bytes from which a table is large. */
  readonly largeFrom?: number | undefined;
}

/** The steps follow the renames of tables, in one transaction with them. */
export async function linkRenames(renaming: LinkRenaming): Promise<readonly Step[]> {
  const { schema, renamed } = renaming;
  const links = ident('h', LINKS_COLUMN);
  const steps: Step[] = [];
  for (const collection of schema.collections.values()) {
    const table = collection.softDelete?.table;
    if (table === undefined || !renamed.actual.has(table)) continue;
    const changed = linksOf(collection, schema).flatMap(({ name, relation, ownColumn }) => {
      const former = renamed.formerNames.get(relation.linkTable);
      return former === undefined ? [] : [{ name, was: linkSideName(former, ownColumn) }];
    });
    if (changed.length === 0) continue;
    const has = (was: string) => sql`${links} ? ${stringLiteral(was)}`;
    const rows = join(
      changed.map(({ was }) => has(was)),
      ' OR ',
    );
    const rewrites = `the links in \`${table}\` get other names while all writers of the collection wait`;
    const changes = changed.map(
      ({ name, was }) => sql`SET ${ident(LINKS_COLUMN)} = ${renamedMember(links, name, was)} WHERE ${has(was)}`,
    );
    const stored = renamed.formerNames.get(table) ?? table;
    steps.push(...(await rewriteSteps(renaming, { table, stored, rows, rewrites }, changes)));
  }
  return steps;
}
