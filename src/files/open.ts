/** Which storage a setting means. */
import { join, resolve } from 'node:path';
import { localStorage } from './local.ts';
import { readS3Place, s3Storage } from './s3.ts';
import type { Storage } from './storage.ts';

export interface StoragePlace {
  /** The folder of the service's data. */
  readonly data: string;
  /** `s3://…`; without one, the bytes are in the folder. */
  readonly files?: string;
}

/** Each database has a folder of its own, named by `storeId`. */
export function openStorage({ data, files }: StoragePlace, storeId: string): Storage {
  if (files === undefined) return localStorage(join(resolve(data), 'files', storeId));
  const place = readS3Place(files);
  if (place === undefined) {
    throw new Error(
      'BYLAW_FILES: expected a place such as s3://bucket/prefix?region=eu-central-1&endpoint=https://s3.example&redirects=true',
    );
  }
  return s3Storage({ ...place, prefix: `${place.prefix}${storeId}/` });
}
