/** The pages of the navigation. A page is here once it is whole. */
import type { ComponentType } from 'preact';
import { wording } from '../en.ts';
import { ApiPage } from '../pages/api/api-page.tsx';
import { AsPage } from '../pages/as/as-page.tsx';
import { AuditPage } from '../pages/audit/audit-page.tsx';
import { DataPage } from '../pages/data/data-page.tsx';
import { FilesPage } from '../pages/files/files-page.tsx';
import { HealthPage } from '../pages/health/health-page.tsx';
import { KeysPage } from '../pages/keys/keys-page.tsx';
import { PoliciesPage } from '../pages/policies/policies-page.tsx';
import { TestsPage } from '../pages/tests/tests-page.tsx';
import { UsersPage } from '../pages/users/users-page.tsx';
import { WhoPage } from '../pages/who/who-page.tsx';
import { WhyPage } from '../pages/why/why-page.tsx';
import { isAdminHere } from './session-state.ts';

export interface StudioPage {
  /** In the address. */
  readonly name: string;
  readonly title: string;
  /** Pressed after `g`. */
  readonly key: string;
  readonly adminOnly?: true;
  /** The page is about the viewed caller. */
  readonly asksAsViewed?: true;
  readonly component: ComponentType;
}

export const PAGES: readonly StudioPage[] = [
  { name: 'data', title: wording.data, key: 'd', asksAsViewed: true, component: DataPage },
  { name: 'policies', title: wording.policies, key: 'p', adminOnly: true, asksAsViewed: true, component: PoliciesPage },
  { name: 'who', title: wording.who, key: 'h', adminOnly: true, asksAsViewed: true, component: WhoPage },
  { name: 'as', title: wording.asAnother, key: 's', adminOnly: true, asksAsViewed: true, component: AsPage },
  { name: 'why', title: wording.why, key: 'w', adminOnly: true, asksAsViewed: true, component: WhyPage },
  { name: 'tests', title: wording.tests, key: 't', adminOnly: true, component: TestsPage },
  { name: 'files', title: wording.files, key: 'f', asksAsViewed: true, component: FilesPage },
  { name: 'users', title: wording.users, key: 'u', adminOnly: true, component: UsersPage },
  { name: 'keys', title: wording.apiKeys, key: 'k', component: KeysPage },
  { name: 'audit', title: wording.audit, key: 'a', adminOnly: true, component: AuditPage },
  { name: 'health', title: wording.health, key: 'y', adminOnly: true, component: HealthPage },
  { name: 'api', title: wording.apiPage, key: 'i', component: ApiPage },
];

/** The pages that the user may open. */
export const openPages = (): readonly StudioPage[] =>
  PAGES.filter(({ adminOnly }) => adminOnly !== true || isAdminHere.value);
