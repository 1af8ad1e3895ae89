/** The statements that knex makes reach the database as knex made them. */
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';

const FOLDER = join(import.meta.dirname, '../../src/migrations');
const source = (file: string): string => readFileSync(join(FOLDER, file), 'utf8');
const MADE = [...source('ddl.ts').matchAll(/^export (?:const|function) (\w+)/gm)].map(([, name]) => name!);

describe('statements of knex', () => {
  it('a single file imports knex, and changes no text', () => {
    const importing = globSync('**/*.ts', { cwd: FOLDER }).filter((file) => /'knex'/.test(source(file)));
    expect(importing).toEqual(['ddl.ts']);
    expect(source('ddl.ts').match(/\$\{|\.(?:replace|concat|slice)| \+ /g)).toBeNull();
  });

  it('no file puts a statement of knex into another text', () => {
    expect(MADE.toSorted()).toEqual(['addForeignKey', 'addUnique', 'createIndex', 'createTable']);
    const inside = new RegExp(`\\$\\{(?:${MADE.join('|')})\\(|\\b(?:${MADE.join('|')})\\([^;]*\\)\\.(?:text|replace)`);
    const changing = globSync('**/*.ts', { cwd: FOLDER }).filter((file) => inside.test(source(file)));
    expect(changing).toEqual([]);
  });
});
