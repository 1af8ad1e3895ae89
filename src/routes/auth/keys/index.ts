/** The routes of API keys, in the order of the manual. */
import type { DescribedRoute } from '../../define-route.ts';
import { createKey } from './create-key.ts';
import { editKey } from './edit-key.ts';
import { listKeys } from './list-keys.ts';
import { readKey } from './read-key.ts';
import { revokeKey } from './revoke-key.ts';
import { rotateKey } from './rotate-key.ts';

export const keyRoutes: readonly DescribedRoute[] = [createKey, listKeys, readKey, editKey, rotateKey, revokeKey];
