// @module-tag long
import { readFileSync } from 'node:fs';
import { beforeAll, expect, test } from 'vitest';
import { call, type Loaded, loadFilms } from '../../bench/movies/client.ts';
import { type Film, LAST_TRUSTED_YEAR, readFilms, releasedAt, toFilm } from '../../bench/movies/films.ts';
import { describeOnOne } from '../support/service.ts';

const schema = readFileSync(new URL('../../bench/movies/bylaw.yaml', import.meta.url), 'utf8');
const USERS = ['ada', 'ben', 'cleo'].map((name) => ({
  email: `${name}@movies.example`,
  password: 'seven-samurai-1954',
}));
const SLICE = 150;

test('a load keeps an odd row unchanged', () => {
  const source = {
    Title: 1776,
    'Release Date': 'Nov 09 2046',
    'Major Genre': 'Drama',
    'Creative Type': 'Drama',
    Director: null,
    'IMDB Rating': 7,
  };
  expect(toFilm(source, 4, 3)).toMatchObject({
    fields: { title: '1776', released_at: '2046-11-09T00:00:00Z', status: 'draft', imdb_rating: 7, budget: null },
    director: null,
    genres: ['Drama'],
    owner: 1,
  });
  expect(() => releasedAt('1998-06-12')).toThrow('cannot read the release date "1998-06-12"');
});

test('the reader parses the whole set', () => {
  const films = readFilms(3);
  expect(films).toHaveLength(3201);
  expect(films.filter((film) => film.fields.title === null)).toHaveLength(1);
});

describeOnOne(
  'a slice of the films, loaded over the API',
  (service) => {
    // Every 20th film, so that drafts, nulls and odd titles are among them.
    const films: Film[] = readFilms(USERS.length)
      .filter((_, index) => index % 20 === 0)
      .slice(0, SLICE)
      .map((film, index) => ({ ...film, owner: index % USERS.length }));
    let loaded: Loaded;
    beforeAll(async () => {
      loaded = await loadFilms({ baseUrl: service.url, films, users: USERS });
    });

    /** All ids of a list, page by page. */
    const idsOf = async (query: string, user: number): Promise<string[]> => {
      const ids: string[] = [];
      for (let more = true; more; ) {
        const page = await call(`${service.url}/api/films?limit=50&offset=${ids.length}&${query}`, {
          token: loaded.tokens[user]!,
        });
        expect(page.status).toBe(200);
        ids.push(...page.body.data.map((film: { id: string }) => film.id));
        more = page.body.page.has_more;
      }
      return ids;
    };
    const expected = (holds: (film: Film) => boolean): string[] =>
      loaded.ids.filter((_, index) => holds(films[index]!)).toSorted();
    const visible = (film: Film, user: number) => film.fields.status === 'published' || film.owner === user;

    test('each user sees published films and their own', async () => {
      expect(films.some((film) => film.fields.status === 'draft')).toBe(true);
      for (const user of USERS.keys()) expect(await idsOf('', user)).toEqual(expected((film) => visible(film, user)));
    });

    test('filters on every scalar type and relation answer as the JSON does', async () => {
      const sample = films.find(
        (film) => film.director !== null && film.fields.imdb_rating !== null && film.genres.length > 0,
      )!;
      const { fields } = sample;
      const genre = sample.genres[0]!;
      const queries: [string, (film: Film) => boolean][] = [
        [`title=${encodeURIComponent(String(fields.title))}`, (film) => film.fields.title === fields.title],
        [`imdb_rating=${fields.imdb_rating}`, (film) => film.fields.imdb_rating === fields.imdb_rating],
        [`rated=R`, (film) => film.fields.rated === 'R'],
        [`imdb_votes=${fields.imdb_votes}`, (film) => film.fields.imdb_votes === fields.imdb_votes],
        [`released_at=${fields.released_at}`, (film) => film.fields.released_at === fields.released_at],
        [
          `director=${loaded.names.get('directors')!.get(sample.director!)}`,
          (film) => film.director === sample.director,
        ],
        [`genres_any=${loaded.names.get('genres')!.get(genre)}`, (film) => film.genres.includes(genre)],
        [`owner_id=${loaded.userIds[1]}&rated=PG-13`, (film) => film.owner === 1 && film.fields.rated === 'PG-13'],
      ];
      for (const [query, holds] of queries) {
        const ids = await idsOf(query, 0);
        expect([query, ids]).toEqual([query, expected((film) => visible(film, 0) && holds(film))]);
        expect(ids.length).toBeGreaterThan(0);
      }
    });

    test('expansion gives the related records of the JSON', async () => {
      const nameOf = (record: { name: string } | null) => record?.name ?? null;
      for (const [index, film] of films.entries()) {
        if (index % 15 !== 0 || !visible(film, 2)) continue;
        const { body } = await call(
          `${service.url}/api/films/${loaded.ids[index]}?expand=director,distributor,genres`,
          { token: loaded.tokens[2]! },
        );
        const { expand, released_at, ...record } = body.data;
        expect(record).toMatchObject(
          Object.fromEntries(Object.entries(film.fields).filter(([name]) => name !== 'released_at')),
        );
        expect(released_at).toBe(String(film.fields.released_at).replace('Z', '.000000Z'));
        expect([nameOf(expand.director), nameOf(expand.distributor)]).toEqual([film.director, film.distributor]);
        expect(expand.genres.map(nameOf).toSorted()).toEqual(film.genres.toSorted());
      }
    });

    test('the policies let only the owner change a film, and only drafts be deleted', async () => {
      const published = films.findIndex((film) => film.fields.status === 'published');
      const draft = films.findIndex((film) => film.fields.status === 'draft');
      const owner = films[draft]!.owner;
      const other = (owner + 1) % USERS.length;
      const at = (index: number) => `${service.url}/api/films/${loaded.ids[index]}`;
      const remove = async (index: number, user: number) =>
        (await call(at(index), { method: 'DELETE', token: loaded.tokens[user]! })).status;
      expect(await remove(published, films[published]!.owner)).toBe(403);
      expect(await remove(draft, other)).toBe(404);
      const patched = await call(at(published), {
        method: 'PATCH',
        token: loaded.tokens[(films[published]!.owner + 1) % 3]!,
        body: { data: { title: 'Mine' } },
      });
      expect(patched.status).toBe(403);
      expect(Number(String(films[draft]!.fields.released_at).slice(0, 4))).toBeGreaterThan(LAST_TRUSTED_YEAR);
    });

    test('a second load finds the films of the first', async () => {
      const again = await loadFilms({ baseUrl: service.url, films: films.slice(0, 10), users: USERS });
      expect(again.ids).toEqual(loaded.ids.slice(0, 10));
    });
  },
  { schema },
);
