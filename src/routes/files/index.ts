/** The routes of files beyond those of every collection, in the order of the manual. */
import type { DescribedRoute } from '../define-route.ts';
import { readContent } from './content.ts';
import { linkFile } from './link.ts';
import { uploadFiles } from './upload.ts';
import { readUsage } from './usage.ts';

export const fileRoutes: readonly DescribedRoute[] = [uploadFiles, readContent, linkFile, readUsage];
