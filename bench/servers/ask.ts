/** How both hand-written servers ask their database, which is PostgreSQL or PGlite. */
export interface Answer<Row> {
  readonly rows: readonly Row[];
  /** Rows that the statement returned or changed. */
  readonly count: number;
}

/** `name` is that of a prepared statement: one for each text. Rejects where the database reports an error. */
export type Ask<Row> = (name: string, text: string, values: readonly unknown[]) => Promise<Answer<Row>>;

/** The text of each cell. */
export type Cells = readonly (string | null)[];

/** Otherwise it is the data folder of an embedded database. */
export const isUrl = (place: string): boolean => /^postgres(?:ql)?:/.test(place);
