/** Printed where guests are judged though the schema admits none. */
export const GUEST_NOTE = 'the schema admits no guests; they are judged nevertheless, with the role `guest` alone';
