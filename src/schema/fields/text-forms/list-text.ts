/** Lists as text, in a column that becomes one of strings or was one: JSON, as PostgreSQL prints it. */
import { type ElementOfList, MOST_ELEMENTS } from '../../../policy/scalar-types.ts';
import { quotedText, raw, type Sql, sql } from '../../../sql.ts';
import type { TextForm } from '../kind.ts';
import { DAY_FORM, INSTANT_FORM, printInstants } from './datetime-text.ts';

/** Elements that a cast to the type reads, each as a regular expression. A day that some years lack is not among them. */
const ELEMENT_FORMS: Readonly<Record<ElementOfList, string>> = {
  // An array literal has these two of the escapes of JSON.
  string: String.raw`"([^"\\]|\\["\\])*"`,
  int: '-?[0-9]{1,16}',
  float: String.raw`-?[0-9]{1,17}(\.[0-9]{1,17})?(e[+-][0-9]{1,2})?`,
  bool: '(true|false)',
  date: `"${DAY_FORM}"`,
  datetime: `"${INSTANT_FORM}"`,
};

/** Elements that PostgreSQL prints in another form than answers have. */
const PRINTS: Readonly<Partial<Record<ElementOfList, TextForm['print']>>> = { datetime: printInstants };

/** True of an element that the field does not take. */
const TAKES_NOT: Readonly<Partial<Record<ElementOfList, (longest: number) => Sql>>> = {
  string: (longest) => sql`length(e) > ${raw(String(longest))}`,
  int: () => sql`e NOT BETWEEN -9007199254740991 AND 9007199254740991`,
};

/**
 * @param column the type of the list
 * @param longest characters of an element
 */
export function listTextForm(element: ElementOfList, column: string, longest: number): TextForm {
  const form = ELEMENT_FORMS[element];
  const print = PRINTS[element] ?? ((list: Sql): Sql => sql`to_json(${list})::text`);
  const parse = (text: Sql): Sql => sql`('{' || substr(${text}, 2, length(${text}) - 2) || '}')::${raw(column)}`;
  const none = TAKES_NOT[element]?.(longest) ?? raw('false');
  return {
    print,
    parse,
    // No cast meets a text that is not of the form.
    isPrinted: (text) => sql`CASE
      WHEN ${text} ~ ${raw(quotedText(`^\\[(${form}(,${form})*)?\\]$`))}
      THEN ${print(parse(text))} = ${text}
       AND cardinality(${parse(text)}) <= ${raw(String(MOST_ELEMENTS))}
       AND NOT EXISTS (SELECT 1 FROM unnest(${parse(text)}) AS e WHERE ${none})
      ELSE false
    END`,
  };
}
