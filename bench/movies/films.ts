/** `movies.json` of vega-datasets (movies.LICENSE), read into what the API takes. The source's oddities are kept, not repaired: see `released_at`. */
import { readFileSync } from 'node:fs';
import { gunzipSync } from 'node:zlib';

/** A row as the source has it. `Title` is a number nine times and null once. */
type Source = Readonly<Record<string, string | number | null>>;

/** A film before its relations have ids: names take their place. */
export interface Film {
  readonly fields: Readonly<Record<string, string | number | null>>;
  readonly director: string | null;
  readonly distributor: string | null;
  readonly genres: readonly string[];
  /** Which of the loading users owns it. */
  readonly owner: number;
}

const MONTHS = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec'];

/** The set was compiled in 2010; a later year is a wrongly completed two-digit year, so such a film stays a draft. */
export const LAST_TRUSTED_YEAR = 2011;

/** "Jun 12 1998" → "1998-06-12T00:00:00Z". Throws on any other form, so that no row is bent silently. */
export function releasedAt(text: string): string {
  const [, month, day, year] = /^([A-Z][a-z]{2}) (\d{2}) (\d{4})$/.exec(text) ?? [];
  const index = MONTHS.indexOf(month ?? '');
  if (index < 0) throw new Error(`cannot read the release date ${JSON.stringify(text)}, expected e.g. "Jun 12 1998"`);
  return `${year}-${String(index + 1).padStart(2, '0')}-${day}T00:00:00Z`;
}

export function toFilm(source: Source, index: number, owners: number): Film {
  const released = releasedAt(String(source['Release Date']));
  const title = source.Title;
  const names = [source['Major Genre'], source['Creative Type']].filter((name) => typeof name === 'string');
  return {
    fields: {
      title: title === null || title === undefined ? null : String(title),
      status: Number(released.slice(0, 4)) <= LAST_TRUSTED_YEAR ? 'published' : 'draft',
      us_gross: number(source['US Gross']),
      worldwide_gross: number(source['Worldwide Gross']),
      dvd_sales: number(source['US DVD Sales']),
      budget: number(source['Production Budget']),
      released_at: released,
      rated: text(source['MPAA Rating']),
      running_minutes: number(source['Running Time min']),
      source: text(source.Source),
      rotten_tomatoes: number(source['Rotten Tomatoes Rating']),
      imdb_rating: number(source['IMDB Rating']),
      imdb_votes: number(source['IMDB Votes']),
    },
    director: text(source.Director),
    distributor: text(source.Distributor),
    genres: [...new Set(names)],
    owner: index % owners,
  };
}

const text = (value: string | number | null | undefined): string | null => (value == null ? null : String(value));
const number = (value: string | number | null | undefined): number | null => (value == null ? null : Number(value));

/** All films, or the first `count`; `owners` users share them in turn. */
export function readFilms(owners: number, count = Number.POSITIVE_INFINITY): Film[] {
  const packed = readFileSync(new URL('./movies.json.gz', import.meta.url));
  const rows = JSON.parse(gunzipSync(packed).toString()) as Source[];
  return rows.slice(0, count).map((row, index) => toFilm(row, index, owners));
}
