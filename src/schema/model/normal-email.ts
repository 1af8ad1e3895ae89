/**
 * The one form in which addresses are stored and compared. Only ASCII letters change: `toLowerCase`
 * would also turn the Kelvin sign (U+212A) into `k`, and so one address into another's.
 */
export const normalEmail = (email: string): string => email.replace(/[A-Z]+/g, (letters) => letters.toLowerCase());
