/** Opens the storage that the settings name. */
import { join, resolve } from 'node:path';
import { loadOptional } from '../../optional-package.ts';
import { LocalStorage } from './local.ts';
import { readS3Place } from './s3-place.ts';
import type { Storage } from './storage.ts';

export interface StoragePlace {
  /** The data folder of the service. */
  readonly data: string;
  /** `s3://…`; otherwise the bytes are in the data folder. */
  readonly files?: string;
}

const S3_PACKAGES = ['@aws-sdk/client-s3', '@aws-sdk/lib-storage', '@aws-sdk/s3-request-presigner'];

/** Each database has its own folder, named by `storeId`. Throws MissingPackage. */
export async function openStorage({ data, files }: StoragePlace, storeId: string): Promise<Storage> {
  if (files === undefined) return new LocalStorage(join(resolve(data), 'files', storeId));
  const place = readS3Place(files);
  if (place === undefined) {
    throw new Error(
      'BYLAW_FILES: expected a place such as s3://bucket/prefix?region=eu-central-1&endpoint=https://s3.example&redirects=true',
    );
  }
  const { S3Storage } = await loadOptional({
    packages: S3_PACKAGES,
    reason: 'BYLAW_FILES names a bucket',
    load: () => import('./s3.ts'),
  });
  return new S3Storage({ ...place, prefix: `${place.prefix}${storeId}/` });
}
