import type { Scenario } from '../scenario.ts';
import { BACKUP } from './backup.ts';
import { CLUSTER_SCENARIOS } from './cluster.ts';
import { DATABASE_SCENARIOS } from './database.ts';
import { DEPLOY_SCENARIOS } from './deploys.ts';
import { FAIRNESS_SCENARIOS } from './fairness.ts';
import { LATE_DATABASE } from './late-database.ts';
import { MIGRATION_KILLED } from './migrations.ts';
import { POOLER } from './pooler.ts';
import { PROCESS_SCENARIOS } from './processes.ts';
import { REPLICA } from './replica.ts';
import { SLOW_FILTER } from './slow-filter.ts';

export const SCENARIOS: readonly Scenario[] = [
  ...DATABASE_SCENARIOS,
  ...PROCESS_SCENARIOS,
  ...DEPLOY_SCENARIOS,
  LATE_DATABASE,
  MIGRATION_KILLED,
  BACKUP,
  REPLICA,
  POOLER,
  ...CLUSTER_SCENARIOS,
  SLOW_FILTER,
  ...FAIRNESS_SCENARIOS,
];
