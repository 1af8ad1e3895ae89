/** Faults of writes whose references have another value than the id, or no foreign key. */
import { type Fault, fault } from '../faults/fault.ts';

const STORED_ROWS = 'src/policy/stored-rows.ts';
const WRITTEN_ROW = 'src/records/write/written-row.ts';
const OWNERS_CHANGES = 'src/records/write/owners-changes.ts';
const LOCKED_ROW = 'src/records/write/locked-row.ts';
const UNFOLLOWED = 'src/records/relations/unfollowed-references.ts';
const LOST_REFERENCES = 'src/policy/lower/lost-references.ts';

export const REFERRING_FAULTS: readonly Fault[] = [
  fault(
    STORED_ROWS,
    'a written reference by another column is that of any record',
    /cellOf\(references, ident\('r', references\.column\), references\.key, id\)/,
    "sql`(SELECT min(${ident('r', references.column)}) FROM ${tableIdent(references.table)} AS r)`",
  ),
  fault(
    STORED_ROWS,
    'a row that is locked has no reference by another column',
    /\(relation\) => idReferredTo\('s', relation\)/,
    "(relation) => (relation.references === undefined ? idReferredTo('s', relation) : raw('NULL::uuid'))",
  ),
  fault(
    WRITTEN_ROW,
    'a stored row has no reference by another column',
    /\? idReferredTo\(made, member\)/,
    "? (member.references === undefined ? idReferredTo(made, member) : raw('NULL::uuid'))",
  ),
  fault(
    OWNERS_CHANGES,
    'a row that the rules deny is stored',
    /if \(asked\.includes\(false\)\) return \{ id: undefined, holds: asked \};\n {2}const insert([\s\S]*?)return ownersAnswer\(cells, asked\)/,
    "const insert$1return ownersAnswer(cells && [cells[0]!, ...asked.map(() => 't')], asked)",
  ),
  fault(
    LOCKED_ROW,
    'a row becomes what the rules deny',
    /if \(id !== undefined && holds\.includes\(false\)\) throw this\.#refusalOfStored\(holds\);\n {6}return id !== undefined;/,
    'return true;',
  ),
  fault(UNFOLLOWED, 'a delete cascades by foreign keys alone', /await q\.rows\(sql`DELETE FROM .*;/, ';'),
  fault(
    UNFOLLOWED,
    'a delete is held back by foreign keys alone',
    /relation\.onDelete !== 'restrict' \|\|/,
    '$& true ||',
  ),
  fault(
    LOST_REFERENCES,
    'a record that is gone has its id',
    /(#isLostId\(operand[\s\S]*?)this\.#mayLose\(/,
    '$1this.#isKept(',
  ),
];
