/**
 * Capabilities of the caller on stored records, as columns of the statement that reads them. An update
 * can depend on the values that it writes: `depends` means that record and caller leave it open.
 */

import type { Cells } from '../database/contract.ts';
import type { Permit } from '../policy/access.ts';
import { notFound } from '../refusal.ts';
import type { Collection, MemberAccess } from '../schema/model/model.ts';
import { join, raw, type Sql, sql } from '../sql.ts';
import { type AccessContext, type Prospect, type Reading, readable, type Store } from './access-context.ts';
import { recordKeyOf } from './record-key.ts';
import { inTenantOf, scopeOf } from './scope.ts';

type CapabilityVerdict = boolean | 'depends';
interface WriteCapabilities {
  readonly update: CapabilityVerdict;
  readonly delete: boolean;
}
export interface Capabilities extends WriteCapabilities {
  /** Capabilities of the fields and belongs_to with rules of their own. */
  readonly fields: Readonly<Record<string, MemberCapabilities>>;
}
interface MemberCapabilities {
  readonly read: boolean;
  readonly write: CapabilityVerdict;
}

/** Columns for the rules of update and delete. */
export class CapabilityColumns {
  /** The cells of a row. */
  readonly width = 3;
  readonly #update: Prospect;
  readonly #remove: Permit;
  readonly #writes: Required<Collection>['writes'];

  constructor(access: AccessContext) {
    this.#writes = access.collection.writes ?? EVERY_WRITE;
    this.#update = access.prospect(access.collection.access.update);
    this.#remove = access.permit(access.collection.name, 'delete');
  }

  of(alias: string): Sql {
    const update = this.#writes.update ? prospectColumns(this.#update, alias) : raw('FALSE, FALSE');
    const remove = this.#writes.delete ? this.#remove.where(alias) : raw('FALSE');
    return join([update, sql`(${remove})`], ', ');
  }

  /** @param from the place of the first cell */
  read(cells: Cells, from: number): WriteCapabilities {
    return { update: capabilityAt(cells, from), delete: cells[from + 2] === 't' };
  }
}

const EVERY_WRITE = { create: true, update: true, delete: true };

const prospectColumns = ({ certain, possible }: Prospect, alias: string): Sql =>
  sql`(${certain.where(alias)}), (${possible.where(alias)})`;

function capabilityAt(cells: Cells, from: number): CapabilityVerdict {
  if (cells[from] === 't') return true;
  return cells[from + 1] === 't' ? 'depends' : false;
}

/** Throws `not_found` where the caller may not read the record. */
export async function capabilitiesOf(store: Store, caller: AccessContext, id: string): Promise<Capabilities> {
  const reading = await inTenantOf<Reading>({ store, q: store.readerFor(caller), access: caller }, id, 'read');
  const { access } = reading;
  const { collection } = access;
  const own = new CapabilityColumns(access);
  const members = [...collection.memberAccess].map(([name, rules]) => new MemberColumns(access, name, rules));
  const columns = join([own.of('t'), ...members.map((member) => member.of('t'))], ', ');
  const [cells] = await reading.q.rows(sql`
    SELECT ${columns}
      FROM ${scopeOf(reading)
        .from(collection.name, 't')
        .where(recordKeyOf(collection).is('t', id), readable(access, collection.name, 't'))}`);
  if (cells === undefined) throw notFound();
  const record = own.read(cells, 0);
  const fields = members.map((member, i) => [member.name, member.read(cells, own.width + 3 * i, record)] as const);
  return { ...record, fields: Object.fromEntries(fields) };
}

/** Columns for the rules of one member of a row. */
class MemberColumns {
  readonly name: string;
  readonly #read: Permit | undefined;
  readonly #write: Prospect | undefined;

  constructor(access: AccessContext, name: Collection['name'], { update }: MemberAccess) {
    this.name = name;
    this.#read = access.member(access.collection.name, name, 'read');
    this.#write = update && access.prospect(update);
  }

  of(alias: string): Sql {
    const read = this.#read === undefined ? raw('TRUE') : sql`(${this.#read.where(alias)})`;
    const write = this.#write === undefined ? raw('TRUE, TRUE') : prospectColumns(this.#write, alias);
    return join([read, write], ', ');
  }

  /** A member is written by an update of the record. */
  read(cells: Cells, from: number, { update }: WriteCapabilities): MemberCapabilities {
    return { read: cells[from] === 't', write: bothAllow(update, capabilityAt(cells, from + 1)) };
  }
}

function bothAllow(one: CapabilityVerdict, other: CapabilityVerdict): CapabilityVerdict {
  if (one === false || other === false) return false;
  return one === true ? other : one;
}
