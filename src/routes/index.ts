/** The routes, in the order of the manual. If two paths match, the first counts. */

import type { Route } from '../http/route.ts';
import type { Schema } from '../schema/model/model.ts';
import { administrationRoutes } from './administration/index.ts';
import { authRoutes } from './auth/index.ts';
import { batchRecords } from './batch/batch.ts';
import { changeRoutes } from './changes/change-routes.ts';
import type { DescribedRoute } from './define-route.ts';
import { decideMatrix } from './explain/decide-matrix.ts';
import { explainDecision } from './explain/explain-decision.ts';
import { fileRoutes } from './files/index.ts';
import { pageRoutes } from './pages/page-routes.ts';
import { aggregateRecords } from './records/aggregate-records.ts';
import { readCollectionCapabilities } from './records/collection-capabilities.ts';
import { createRecord } from './records/create-record.ts';
import { removeRecord } from './records/delete-record.ts';
import { dryRunWrite } from './records/dry-run.ts';
import { listRecords } from './records/list-records.ts';
import { deleteMatching } from './records/matching/delete-matching.ts';
import { updateMatching } from './records/matching/update-matching.ts';
import { queryRecords } from './records/query/query.ts';
import { readCapabilities } from './records/read-capabilities.ts';
import { readHistory } from './records/read-history.ts';
import { readRecord } from './records/read-record.ts';
import { restoreRecord } from './records/restore-record.ts';
import { updateRecord } from './records/update-record.ts';
import { upsertRecord } from './records/upsert-record.ts';
import { studioRoutesAt } from './studio/studio-pages.ts';
import { docs, docsScript, docsStyle } from './system/docs/docs.ts';
import { healthz, readyz } from './system/health.ts';
import { metrics } from './system/metrics.ts';
import { openapi } from './system/openapi.ts';
import { publicFile } from './system/public-file.ts';
import { readServedSchema } from './system/read-schema.ts';
import { readStatus } from './system/read-status.ts';
import { startPage } from './system/start-page.ts';
import { compareTexts } from './workshop/compare-texts.ts';
import { readPolicyTests, runPolicyTests } from './workshop/run-tests.ts';
import { saveSchema } from './workshop/save-schema.ts';

export const routes: readonly DescribedRoute[] = [
  ...authRoutes,
  ...administrationRoutes,
  ...fileRoutes,
  createRecord,
  listRecords,
  queryRecords,
  aggregateRecords,
  readRecord,
  updateRecord,
  upsertRecord,
  updateMatching,
  deleteMatching,
  removeRecord,
  restoreRecord,
  readHistory,
  readCapabilities,
  readCollectionCapabilities,
  dryRunWrite,
  batchRecords,
  ...changeRoutes,
  explainDecision,
  decideMatrix,
  readServedSchema,
  saveSchema,
  compareTexts,
  readPolicyTests,
  runPolicyTests,
  readStatus,
  healthz,
  readyz,
  metrics,
  openapi,
  docs,
  docsScript,
  docsStyle,
  startPage,
];

interface Served {
  readonly studio: boolean;
  readonly isDevelopment: boolean;
  /** A folder with a front end. */
  readonly publicFolder?: string;
}

/** The routes, the pages of accounts, the studio, and the front end after them. */
export const servedRoutes = (
  { studio, isDevelopment, publicFolder }: Served,
  { studio: { path } }: Pick<Schema, 'studio'>,
): readonly Route[] => [
  ...routes,
  ...pageRoutes,
  ...(studio ? studioRoutesAt(path, isDevelopment) : []),
  ...(publicFolder === undefined ? [] : [publicFile]),
];
