/** JSON as text, in a column that becomes one of strings or was one: as PostgreSQL prints it. */
import { quotedText, raw, type Sql, sql } from '../../../sql.ts';
import { asText, type TextForm } from '../kind.ts';

const STRING = String.raw`"([^"\\[:cntrl:]]|\\["\\bfnrt]|\\u00(0[1-9a-f]|1[0-9a-f]))*"`;
const NUMBER_IN_TEXT = String.raw`-?(0|[1-9][0-9]*)(\.[0-9]+)?`;
/** Values after those that they hold: a string, a number, and a list or an object. */
const HELD_VALUE = '(null|true|false|""|0|#)';
const HOLDER = String.raw`\[(${HELD_VALUE}(, ${HELD_VALUE})*)?\]|\{("": ${HELD_VALUE}(, "": ${HELD_VALUE})*)?\}`;
/** The digits before or after the point of a number that the field surely takes. */
const MANY_DIGITS = '[0-9]{200}';

const foldedTokens = (text: Sql, pattern: string, value: string): Sql =>
  sql`regexp_replace(${text}, ${raw(quotedText(pattern))}, ${raw(quotedText(value))}, 'g')`;

/** PostgreSQL 15 has no test of a text that is JSON: lists and objects are replaced from the inside, a level at a time. */
export const jsonText = (mostBytes: number, mostLevels: number): TextForm =>
  asText((text) => {
    const withoutStrings = foldedTokens(text, STRING, '""');
    const flat = foldedTokens(withoutStrings, NUMBER_IN_TEXT, '0');
    const whole = Array.from({ length: mostLevels }).reduce<Sql>((inner) => foldedTokens(inner, HOLDER, '#'), flat);
    return sql`CASE
      WHEN octet_length(${text}) <= ${raw(String(mostBytes))}
       AND ${text} !~ ${raw(quotedText(MANY_DIGITS))}
       AND ${withoutStrings} !~ '#'
       AND ${whole} ~ ${raw(quotedText(`^${HELD_VALUE}$`))}
      THEN ${text}::jsonb::text = ${text} AND ${text} <> 'null'
      ELSE false
    END`;
  });
