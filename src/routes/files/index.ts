/** What files have beyond the routes of every collection, in the order of the manual. */
import type { Route } from '../../http/route.ts';
import { readContent } from './content.ts';
import { linkFile } from './link.ts';
import { uploadFile } from './upload.ts';

export const fileRoutes: readonly Route[] = [uploadFile, readContent, linkFile];
