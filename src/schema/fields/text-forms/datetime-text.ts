/** Instants as text, alone and in lists, in a column that becomes one of strings or was one: as answers have them. */
import { quotedText, raw, type Sql, sql } from '../../../sql.ts';
import { asText, type TextForm } from '../kind.ts';

/** A day that each year has: a cast reads every text of the form. */
export const DAY_FORM =
  '(?!0000)[0-9]{4}-((0[1-9]|1[0-2])-(0[1-9]|1[0-9]|2[0-8])|(0[13-9]|1[0-2])-(29|30)|(0[13578]|1[02])-31)';
export const INSTANT_FORM = String.raw`${DAY_FORM}T([01][0-9]|2[0-3])(:[0-5][0-9]){2}\.[0-9]{6}Z`;

/** The instant as answers print it. */
export const instantText = (instant: Sql): Sql =>
  sql`to_char(${instant} AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')`;

export const datetimeText: TextForm = {
  ...asText((text) => sql`${text} ~ ${raw(quotedText(`^${INSTANT_FORM}$`))}`),
  print: instantText,
};

/** PostgreSQL prints elements without the zeros at their ends, and the offset of the session, which is UTC. */
export function printInstants(list: Sql): Sql {
  const withZeros = (text: Sql, count: number): Sql => {
    const decimals = String.raw`\.[0-9]{${count}}`;
    const found = count === 0 ? String.raw`(:[0-9]{2})\+00:00"` : String.raw`(${decimals})\+00:00"`;
    const put = `\\1${count === 0 ? '.' : ''}${'0'.repeat(6 - count)}Z"`;
    return sql`regexp_replace(${text}, ${raw(quotedText(found))}, ${raw(quotedText(put))}, 'g')`;
  };
  return [0, 1, 2, 3, 4, 5, 6].reduce(withZeros, sql`to_json(${list})::text`);
}
