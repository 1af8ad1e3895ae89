/** Lists as text, in a column that becomes one of strings or was one: JSON, as PostgreSQL prints it. */
import { type ElementOfList, MOST_ELEMENTS } from '../../policy/scalar-types.ts';
import { quotedText, raw, type Sql, sql } from '../../sql.ts';
import type { TextForm } from './kind.ts';

/** Elements that a cast to the type reads, each as a regular expression. A day that some years lack is not among them. */
const ELEMENT_FORMS: Readonly<Partial<Record<ElementOfList, string>>> = {
  // An array literal has these two of the escapes of JSON.
  string: String.raw`"([^"\\]|\\["\\])*"`,
  int: '-?[0-9]{1,16}',
  float: String.raw`-?[0-9]{1,17}(\.[0-9]{1,17})?(e[+-][0-9]{1,2})?`,
  bool: '(true|false)',
  date: '"(?!0000)[0-9]{4}-((0[1-9]|1[0-2])-(0[1-9]|1[0-9]|2[0-8])|(0[13-9]|1[0-2])-(29|30)|(0[13578]|1[02])-31)"',
};

/** True of an element that the field does not take. */
const TAKES_NOT: Readonly<Partial<Record<ElementOfList, (longest: number) => Sql>>> = {
  string: (longest) => sql`length(e) > ${raw(String(longest))}`,
  int: () => sql`e NOT BETWEEN -9007199254740991 AND 9007199254740991`,
};

/**
 * Undefined: PostgreSQL prints the elements in another form.
 *
 * @param column the type of the list
 * @param longest characters of an element
 */
export function listTextForm(element: ElementOfList, column: string, longest: number): TextForm | undefined {
  const form = ELEMENT_FORMS[element];
  if (form === undefined) return undefined;
  const print = (list: Sql): Sql => sql`to_json(${list})::text`;
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
