/** Dates of a file in a form of its own, such as `DD.MM.YYYY` or `M/D/YYYY HH:mm`. */

const PARTS: Readonly<Record<string, string>> = {
  YYYY: '(?<year>[0-9]{4})',
  MM: '(?<month>[0-9]{2})',
  M: '(?<month>[0-9]{1,2})',
  DD: '(?<day>[0-9]{2})',
  D: '(?<day>[0-9]{1,2})',
  HH: '(?<hour>[0-9]{2})',
  H: '(?<hour>[0-9]{1,2})',
  mm: '(?<minute>[0-9]{2})',
  ss: '(?<second>[0-9]{2})',
};
const patternOf = (part: string): string => PARTS[part] ?? part.replace(/[\\^$.*+?()[\]{}|/]/, '\\$&');
const FORMAT_PART = new RegExp(`${Object.keys(PARTS).join('|')}|.`, 'gsu');

export class DateFormat {
  readonly text: string;
  /** The form has a time of day, in UTC. */
  readonly hasTime: boolean;
  readonly #pattern: RegExp;

  /** Throws a RangeError for a form that lacks a part of a date, or has one twice. */
  constructor(text: string) {
    const parts = text.match(FORMAT_PART) ?? [];
    const count = (...names: readonly string[]): number => parts.filter((part) => names.includes(part)).length;
    const [hours, minutes, seconds] = [count('HH', 'H'), count('mm'), count('ss')];
    const isDate = [count('YYYY'), count('MM', 'M'), count('DD', 'D')].every((found) => found === 1);
    if (!isDate || hours > 1 || minutes > hours || seconds > minutes)
      throw new RangeError(
        `--date-format: expected one each of YYYY, MM or M, and DD or D, then perhaps HH or H, mm and ss, found ${JSON.stringify(text)}`,
      );
    this.text = text;
    this.hasTime = hours > 0;
    this.#pattern = new RegExp(`^${parts.map(patternOf).join('')}$`, 'su');
  }

  /** RFC 3339, or the date of it; the day may be none of the calendar. Undefined: the text is not of the form. */
  read(text: string, isDay: boolean): string | undefined {
    const found = this.#pattern.exec(text)?.groups;
    if (found === undefined) return undefined;
    const two = (part: string): string => (found[part] ?? '').padStart(2, '0');
    const day = `${found.year}-${two('month')}-${two('day')}`;
    return isDay ? day : `${day}T${two('hour')}:${two('minute')}:${two('second')}Z`;
  }
}
