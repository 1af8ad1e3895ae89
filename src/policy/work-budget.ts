/**
 * The work that deciding a caller's filter in the process may take, because it holds up everybody else. Counted in steps,
 * not in time: the outcome does not depend on the load. A step takes some 50 ns.
 */

/** Less than 100 ms for steps of any kind. */
const MOST_STEPS = 200_000;
/** Powers of two: UTF-16 units that are compared in a step, those that are parsed or folded, and elements of a list. */
const [COMPARED, PARSED, ELEMENTS] = [5, 1, 3];
/** Powers of two: the steps of folding a unit of a text beyond ASCII, which may become many, and of a value within JSON. */
const [REWRITTEN, WITHIN_JSON] = [3, 3];
const BEYOND_ASCII = /\P{ASCII}/u;

export class TooMuchWork extends Error {
  constructor() {
    super('a filter takes more work than it may');
    this.name = 'TooMuchWork';
  }
}

export class WorkBudget {
  #left: number;

  constructor(steps = MOST_STEPS) {
    this.#left = steps;
  }

  /** Throws `TooMuchWork`. */
  take(steps: number): void {
    this.#left -= steps;
    if (this.#left < 0) throw new TooMuchWork();
  }

  /** Takes the steps of reading a value. */
  read(value: unknown): void {
    if (typeof value === 'string') this.take(value.length >> COMPARED);
    else if (Array.isArray(value)) this.take((value.length >> ELEMENTS) + (unitsIn(value) >> COMPARED));
  }

  /** Takes the steps of reading the elements of a list's text. */
  parse(text: unknown): void {
    if (typeof text === 'string') this.take(text.length >> PARSED);
  }

  fold(text: unknown): void {
    if (typeof text === 'string' && BEYOND_ASCII.test(text)) this.take(text.length << REWRITTEN);
    else this.parse(text);
  }

  json(text: unknown): void {
    this.parse(text);
    if (typeof text === 'string') this.take(jsonValues(text) << WITHIN_JSON);
  }
}

const [NEXT_VALUE, VALUE_OF_KEY] = [0x2c, 0x3a];

/** The commas and colons of a JSON text, which has no more values. */
function jsonValues(json: string): number {
  let values = 0;
  for (let i = 0; i < json.length; i++) {
    const unit = json.charCodeAt(i);
    if (unit === NEXT_VALUE || unit === VALUE_OF_KEY) values++;
  }
  return values;
}

const unitsIn = (list: readonly unknown[]): number =>
  list.reduce<number>((sum, element) => sum + (typeof element === 'string' ? element.length : 0), 0);

/** The work of what the schema's author states. */
export const UNLIMITED_WORK = new WorkBudget(Number.POSITIVE_INFINITY);
