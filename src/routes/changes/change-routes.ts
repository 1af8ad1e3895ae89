import type { DescribedRoute } from '../define-route.ts';
import { subscribeToRecords } from './subscribe.ts';
import { subscribeToSeveral } from './subscribe-several.ts';
import { watchRecords } from './watch.ts';

export const changeRoutes: readonly DescribedRoute[] = [watchRecords, subscribeToRecords, subscribeToSeveral];
