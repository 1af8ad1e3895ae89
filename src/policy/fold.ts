/** The folding of `matches`: the predicate, the folded copy of a search field and every needle share this function. */

const withoutMarks = (text: string): string => text.replaceAll(/\p{M}/gu, '');

/**
 * Removes marks and lowers the case. Idempotent: a folded text folds to itself. Marks go first too, because normalizing
 * sorts each run of them, which takes the square of its length.
 */
export const fold = (text: string): string =>
  withoutMarks(withoutMarks(text).normalize('NFKD')).toLowerCase().replaceAll('ς', 'σ');

/**
 * A needle of marks alone: its folded text is empty, and is a part of every string. Such a value of a
 * request is absent, and such a literal an error; the empty string itself is neither.
 */
export const isBlankNeedle = (needle: string): boolean => needle !== '' && fold(needle) === '';

/**
 * The column that keeps the folded copy of a search field.
 * INVARIANT: no field's column has such a name, because names have no tilde.
 */
export const foldedColumn = (column: string): string => `${column}~folded`;

export const isFoldedCopy = (column: string): boolean => column.endsWith('~folded');

/** A LIKE pattern for the texts that contain the folded needle. */
export const likePattern = (needle: string): string => `%${fold(needle).replaceAll(/[\\%_]/g, '\\$&')}%`;
