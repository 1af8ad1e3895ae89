/** `1 character`, `2 characters`. */
export const counted = (count: unknown, noun: string): string => `${count} ${noun}${Number(count) === 1 ? '' : 's'}`;
