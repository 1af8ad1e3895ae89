/**
 * First pages of skewed tables on PostgreSQL, under the rules of the sample: the cases of `bench -- pages`, each beside
 * the best statement by hand, which finds the same records.
 */
import { describe, expect, it } from 'vitest';
import { fillSkewed, mostBuffersOf, skewedPages } from '../../../bench/support/skewed-pages.ts';
import { hasPostgres, postgresUrl } from '../../support/store-world.ts';

const ROWS = 20_000;

describe.skipIf(!hasPostgres)('the first pages of skewed tables', () => {
  it('read at most three times the buffers of the best statement by hand, whoever asks', async () => {
    const url = await postgresUrl();
    await fillSkewed(url, ROWS);
    const tooMany: string[] = [];
    let pages = 0;
    for await (const page of skewedPages(url)) {
      pages++;
      const most = mostBuffersOf(page);
      if (page.service.buffers > most) tooMany.push(`${page.title}: ${page.service.buffers}, at most ${most}`);
    }
    expect(tooMany).toEqual([]);
    expect(pages).toBeGreaterThan(40);
  }, 120_000);
});
