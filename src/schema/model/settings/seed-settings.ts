/** `seed:` of the file, a folder or a mapping. */
import type { SchemaFile, SeedFormShape } from '../../file/shape.ts';
import type { Seed, SeedForm } from '../model.ts';

export function readSeed({ seed }: SchemaFile): Seed | undefined {
  if (seed === undefined) return undefined;
  if (typeof seed === 'string') return { folder: seed, files: new Map() };
  const files = Object.entries(seed.files ?? {}).map(([name, shape]): [string, SeedForm] => [name, seedFormOf(shape)]);
  return { folder: seed.folder, files: new Map(files) };
}

const seedFormOf = ({ ref = {}, map = {}, null_as, date_format, delimiter, encoding }: SeedFormShape): SeedForm => ({
  references: new Map(Object.entries(ref)),
  names: new Map(Object.entries(map).map(([name, field]) => [name, field ?? ''])),
  nullText: null_as,
  dateFormat: date_format,
  delimiter,
  encoding,
});
