/** The pages of administrators in Chromium: explanations and the audit trail. */
import { beforeAll, describe, expect, test } from 'vitest';
import type { TestService, User } from '../support/service.ts';
import type { StudioPage } from './studio-browser.ts';

export function administrationCases(service: TestService, open: () => StudioPage): void {
  describe('an administrator', () => {
    let studio: StudioPage;
    let [ann, root]: User[] = [];
    let id: string;

    beforeAll(async () => {
      [ann, root] = [await service.user(), await service.user('admin')];
      id = (await ann!.client.post('/api/documents', { data: { title: 'Of Ann' } })).body.data.id;
      studio = open();
      await studio.beginAs(root!);
    });

    test('an explanation has the verdict, the deciding rule and every leaf, and the address holds the question', async () => {
      await studio.visit('/studio/why', '.question');
      expect(await studio.texts('.top nav a')).toEqual([
        'Data',
        'Policies',
        'Who can',
        'As another',
        'Why',
        'Tests',
        'Files',
        'Users',
        'API keys',
        'Audit',
        'Health',
        'API',
      ]);
      await studio.fill({ as: ann!.email, action: 'delete', collection: 'documents', record: id });
      await studio.click('.question button', 'Ask');
      await studio.until('.verdict');
      expect((await studio.texts('.verdict strong'))[0]).toBe('Allowed');
      expect(await studio.page.evaluate('location.pathname + location.search')).toBe(
        `/studio/why/documents?action=delete&record=${id}&as=${encodeURIComponent(ann!.email)}`,
      );
      expect((await studio.texts('.rule.decisive > p'))[0]).toContain('@record.status = "draft"');
      expect(await studio.texts('.rule.decisive tbody .value')).toEqual(['true', 'true']);
      await studio.size(360);
      expect([await studio.overflow(), await studio.faults()]).toEqual([0, []]);
      await studio.visit(`/studio/why/documents?action=delete&record=${id}&as=guest`, '.verdict.refused');
      await studio.visit('/studio/why/documents?action=read&as=role:member', '.verdict.depends');
      await studio.visit('/studio/why/documents?as=unknown%40example.org', '.problem');
      expect((await studio.texts('.problem p'))[0]).toContain('unknown@example.org');
    });

    test('the trail shows the question, and filters by the kind of event', async () => {
      await studio.theme('dark');
      await studio.visit('/studio/audit?event=explained', '.events tbody tr');
      expect(await studio.texts('.events tbody tr:last-child td:nth-child(2)')).toEqual(['explained']);
      expect([await studio.overflow(), await studio.faults()]).toEqual([0, []]);
      await studio.visit('/studio/audit?event=no_such_event', 'main .empty');
    });

    test('the Tab key reaches every control of every page, and shows where it is', async () => {
      await studio.size(1440);
      const { body } = await root!.client.post('/api/documents', { data: { title: 'Reached by keys' } });
      const pages: readonly (readonly [path: string, ready: string])[] = [
        [`/studio/data/documents?record=${body.data.id}`, '.record dd'],
        ['/studio/policies/documents?rules=delete', '.cm-content'],
        ['/studio/who?collection=documents', '.who td .value'],
        ['/studio/as/documents?view=member', '.matrix tbody td'],
        [`/studio/why/documents?action=delete&record=${id}`, '.verdict'],
        ['/studio/tests', 'main textarea'],
        ['/studio/files', 'main input'],
        [`/studio/users?user=${ann!.id}`, '.account-form'],
        ['/studio/keys', '.account-form'],
        ['/studio/audit', '.events tbody tr'],
        ['/studio/health', 'main td'],
        ['/studio/api', 'main a'],
      ];
      for (const [path, ready] of pages) {
        await studio.visit(path, ready);
        expect([path, await studio.missedByTab()]).toEqual([path, []]);
      }
    });

    test('a record links to its explanation, and other users have neither page', async () => {
      await studio.size(1440);
      await studio.visit(`/studio/data/documents?record=${id}`, '.record .empty');
      await ann!.client.patch(`/api/documents/${id}`, { data: { status: 'published' } });
      await studio.visit(`/studio/data/documents?record=${id}`, '.record a.button');
      await studio.click('.record a.button', 'Why');
      await studio.until('.verdict.allowed');
      await studio.click('.settings button', 'Sign out');
      await studio.until('.sign-in-page');
      await studio.signIn(ann!);
      await studio.visit('/studio/why/documents', 'main.empty');
      expect(await studio.texts('.top nav a')).toEqual(['Data', 'Files', 'API keys', 'API']);
    });
  });
}
