import pg from 'pg';

/** The object id of `text[]`, in every PostgreSQL. */
const TEXT_ARRAY: number = 1009;

/** Reads a `text[]` without NULLs from the text that PostgreSQL prints for it. */
export const readTextArray = pg.types.getTypeParser(TEXT_ARRAY) as (cell: string) => readonly string[];
