/** The id of a made-up user, who is in no record. */
export const MADE_UP_ID = '00000000-0000-4000-8000-000000000000';
