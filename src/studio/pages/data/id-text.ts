/** An id that a person typed, in the form that JSON has for the type of the key. Any other text stays: the service reports it. */
export const idOfText = (keyType: string | undefined, text: string): string | number =>
  keyType === 'int' && /^-?\d+$/.test(text) && Number.isSafeInteger(Number(text)) ? Number(text) : text;
