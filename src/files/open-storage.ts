/** Opens the storage that the settings name. */
import { join, resolve } from 'node:path';
import { localStorage } from './local.ts';
import { readS3Place, s3Storage } from './s3.ts';
import type { Storage } from './storage.ts';

export interface StoragePlace {
  /** The data folder of the service. */
  readonly data: string;
  /** `s3://…`; otherwise the bytes are in the data folder. */
  readonly files?: string;
}

/** Each database has its own folder, named by `storeId`. */
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
