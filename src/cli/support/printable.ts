/** Text of others on the terminal of the operator. */

/** INVARIANT: no input controls the terminal. */
export const escapedCharacter = (character: string): string =>
  `\\u${character.codePointAt(0)!.toString(16).padStart(4, '0')}`;

/** The text on a single line. */
export const printable = (text: string): string => text.replaceAll(/[\p{Cc}\p{Cf}]/gu, escapedCharacter);
