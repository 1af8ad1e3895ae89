/** The pages of policies in Chromium: editors, the truth table, the difference before a save, who can, as another. */
import { beforeAll, describe, expect, test } from 'vitest';
import type { TestService, User } from '../support/service.ts';
import type { StudioPage } from './studio-browser.ts';

export function policyCases(service: TestService, open: () => StudioPage): void {
  describe('the pages of policies', () => {
    let studio: StudioPage;
    let [ann, root]: User[] = [];
    let [id, other]: string[] = [];

    beforeAll(async () => {
      [ann, root] = [await service.user(), await service.user('admin')];
      const made = async ({ client }: User, title: string) =>
        (await client.post('/api/documents', { data: { title } })).body.data.id as string;
      other = await made(root!, 'A draft of the administrator');
      id = await made(ann!, 'A draft of Ann');
      studio = open();
      await studio.size(1440);
      await studio.beginAs(root!);
    });
    const table = `/studio/policies/documents?rules=delete&callers=`;
    const cells = (row: string): Promise<readonly string[]> =>
      studio.page.evaluate(`[...document.querySelectorAll('.matrix tbody tr')]
        .find((each) => each.querySelector('th').textContent === ${JSON.stringify(row)})
        .querySelectorAll('td').values().map(({ textContent }) => textContent).toArray()`);
    test('the table has the outcome of each caller and record, and a cell opens its explanation', async () => {
      await studio.visit(`${table}${ann!.id}&records=${id}`, '.matrix tbody td');
      expect((await cells(ann!.email))[0]).toBe('allowed');
      expect((await cells('guest'))[0]).toBe('refused');
      expect((await cells('admin'))[0]).toBe('allowed');
      expect(await studio.faults()).toEqual([]);
      // The outcome for a member, and the statement.
      await studio.choose('.outcome-head select', 'member');
      await studio.until('.rule-outcome .value.depends');
      expect((await studio.texts('.rule-outcome pre'))[0]).toContain('SELECT');
      expect(await studio.texts('.rule-outcome option')).toContain(ann!.email);
      await studio.click('.matrix tbody td a');
      await studio.until('.rule-outcome .verdict.allowed');
      expect(await studio.texts('.rule-outcome .decisive tbody tr td:first-child')).toEqual([
        '@record.owner = @request.auth.id',
        '@record.status = "draft"',
      ]);
      expect(await studio.faults()).toEqual([]);
      await studio.click('.outcome-head .button', 'Why');
      await studio.until('main > .explanation .verdict.allowed');
      expect(await studio.page.evaluate('location.pathname + location.search')).toBe(
        `/studio/why/documents?action=delete&record=${id}&as=${ann!.id}`,
      );
    });

    test('a person writes a rule, finds the wrong cell, mends it, and knows before saving whom it lets in', async () => {
      const published = { title: 'News', status: 'published' };
      const news = (await ann!.client.post('/api/documents', { data: published })).body.data.id;
      await studio.visit(`${table}${ann!.id}&records=${news}`, '.matrix tbody td');
      await studio.click('.new-rule summary');
      await studio.click('.new-rule button', 'Add the rule');
      await studio.page.until(`[...document.querySelectorAll('.cm-content')].at(-1)?.innerText === 'false'`);
      // A misspelt name is marked, with its fix.
      await studio.write('@record.stats = "published"');
      await studio.until('.issues .error');
      expect(await studio.texts('.cm-lintRange-error')).toEqual(['stats']);
      expect((await studio.texts('.issues .error'))[0]).toContain('did you mean');
      expect(await studio.texts('.code-string')).toContain('"published"');
      expect(await studio.faults()).toEqual([]);
      await studio.click('.issues button', 'Fix');
      await studio.until('.changed');
      expect([(await cells(ann!.email))[0], (await cells('guest'))[0], (await cells('admin'))[0]]).toEqual([
        'refused allowed',
        'refused allowed',
        'allowed',
      ]);
      // The guest is the wrong cell. Its trace names the new rule.
      await studio.click('.matrix tbody tr:last-child td a');
      await studio.until('.rule-outcome .decisive');
      expect((await studio.texts('.rule-outcome .decisive'))[0]).toContain('@record.status = "published"');
      await studio.write('@record.status = "published" and @request.auth.roles contains "member"');
      await studio.page.until(`document.querySelector('.matrix tbody tr:last-child .changed') === null`);
      expect([(await cells(ann!.email))[0], (await cells('guest'))[0]]).toEqual(['refused allowed', 'refused']);
      await studio.until('.rule-outcome .verdict.refused');
      await studio.click('.draft-actions button', 'Show what changes');
      await studio.until('.difference .verdict.wider');
      const [difference] = await studio.texts('.difference');
      expect(difference).toContain('documents: delete');
      expect(difference).toMatch(/Can newly do this: [^.]*member/);
      expect(difference).not.toContain('guest');
      expect(await studio.faults()).toEqual([]);
      expect((await studio.texts('.difference pre'))[0]).toContain('Record: {');
      expect(await studio.page.evaluate(`document.querySelector('.file-text').value`)).toContain(
        `        - when: '@record.status = "published" and @request.auth.roles contains "member"'\n`,
      );
      await studio.page.send('Page.reload');
      await studio.until('.changed');
      await studio.click('li:last-child > .rule .rule-roles summary');
      await studio.click('li:last-child > .rule .rule-roles input[value=admin]');
      await studio.page.until(`document.querySelector('li:last-child > .rule summary').textContent === 'Roles: admin'`);
      await studio.page.until(`document.querySelector('.file-text').value.includes(
        '        - roles: [admin]\\n          when: \\'@record.status = "published" and')`);
      expect(await studio.faults()).toEqual([]);
      await studio.shot('policies-roles');
      await studio.click('.rule button', 'Remove rule 3');
      await studio.page.until(`document.querySelector('.changed') === null`);
      await studio.click('.draft-actions button', 'Discard the edits');
    });

    test('the table of create is about data that no record has', async () => {
      await studio.visit('/studio/policies/documents?rules=create', '.matrix tbody td');
      expect(await studio.texts('.matrix thead code')).toEqual(['{"title":"title"}']);
      expect([await cells('member'), await cells('guest')]).toEqual([['allowed'], ['refused']]);
      await studio.fill({ data: 'title' });
      await studio.click('.table-subjects form:nth-child(2) button');
      await studio.until('.table-subjects .field-problem');
      await studio.fill({ data: `{ "title": "x", "owner": "${ann!.id}" }` });
      await studio.click('.table-subjects form:nth-child(2) button');
      await studio.page.until(`document.querySelectorAll('.matrix thead code').length === 2`);
      await studio.page.until(`document.querySelectorAll('.matrix tbody tr:first-child td').length === 2`);
      expect(await cells('member')).toEqual(['allowed', 'refused']);
      await studio.click('.matrix tbody tr:first-child td:last-child a');
      await studio.until('.rule-outcome .verdict.refused');
      expect(await studio.faults()).toEqual([]);
    });

    test('the page Who can shows yes, no and the remaining conditions of each role', async () => {
      await studio.visit('/studio/who?collection=documents', '.who td .value');
      expect(await studio.texts('.who thead th')).toEqual(['Role', 'list', 'read', 'create', 'update', 'delete']);
      expect(await studio.texts('.who tbody tr:last-child td .value')).toEqual([
        'depends',
        'depends',
        'depends',
        'depends',
        'yes',
      ]);
      expect((await studio.texts('.who tbody tr:first-child td:last-child'))[0]).toContain('@record.status = "draft"');
      expect(await studio.faults()).toEqual([]);
    });

    test('as another shows the outcomes of a caller, and that nothing is written', async () => {
      await studio.visit(`/studio/as/documents?view=${encodeURIComponent(ann!.email)}`, '.matrix tbody td');
      expect((await studio.texts('.as-bar'))[0]).toContain(ann!.email);
      expect(await studio.texts('.matrix thead th')).toEqual(['Record', 'list', 'read', 'update', 'delete']);
      expect(await studio.faults()).toEqual([]);
      await studio.visit('/studio/as/documents?view=nobody%40example.org', '.problem');
    });

    test('a view as another is kept by links, shows the records of that caller, and writes nothing', async () => {
      const view = `view=${encodeURIComponent(ann!.email)}`;
      await studio.visit(`/studio/as/documents?${view}`, '.matrix tbody td');
      await studio.click('.page a', 'Open Data as this caller');
      await studio.until('.data-page .toolbar');
      expect(await studio.texts('.as-bar strong')).toEqual([ann!.email]);
      const published = { title: 'A draft of the administrator that was published', status: 'published' };
      await root!.client.post('/api/documents', { data: published });
      const found = '/studio/data/documents?columns=title&filter=title+starts+with+%22A+draft+of+the%22';
      await studio.visit(found, '.grid .rows .row');
      expect(await studio.texts('.grid .rows [data-cell]')).toHaveLength(2);
      await studio.visit(`${found}&${view}`, '.grid .rows .row');
      expect(await studio.texts('.grid .rows [data-cell]')).toEqual([published.title]);
      expect(await studio.page.evaluate(`document.querySelector('.toolbar .primary').title`)).toContain('Nothing');
      expect(await studio.faults()).toEqual([]);
      await studio.visit(`/studio/data/users?${view}&record=${ann!.id}`, '.record dd');
      await studio.visit(`/studio/data/documents?${view}&record=${other}`, '.record .empty');
      expect(await studio.texts('.record .empty')).toEqual(['This caller may not read the record.']);
      expect(await studio.faults()).toEqual([]);
      await studio.click('.top nav a', 'Audit');
      await studio.page.until(
        `document.querySelector('.as-bar').textContent.startsWith('This page shows what you see')`,
      );
      await studio.click('.as-bar a', 'End');
      await studio.page.until(`document.querySelector('.as-bar') === null`);
      expect(await studio.page.evaluate('location.search')).toBe('');
    });

    test('the page Who can asks about one user and one record', async () => {
      await studio.visit(`/studio/who?collection=documents&user=${ann!.id}&record=${id}`, '.matrix tbody td');
      await studio.until('.who tbody tr:first-child td .value');
      expect(await studio.texts('.who tbody tr:first-child th')).toEqual([ann!.email]);
      expect(await studio.texts('.who tbody tr:first-child td .value')).toEqual([
        'depends',
        'depends',
        'depends',
        'depends',
        'depends',
      ]);
      expect(await cells(ann!.email)).toEqual(['allowed', 'allowed', 'allowed', 'allowed']);
      expect(await cells('guest')).toEqual(['hidden', 'hidden', 'refused', 'refused']);
      expect(await studio.faults()).toEqual([]);
    });

    test('the pages fit into 360, 768 and 1440 pixels, in both themes', async () => {
      for (const path of [`${table}${ann!.id}&records=${id}`, '/studio/who', '/studio/as/documents?view=member']) {
        await studio.expectFits(path, '.page td');
      }
    });

    test('a user without the role sees no page and no byte of a policy', async () => {
      await studio.beginAs(ann!);
      for (const page of ['policies', 'who', 'as', 'users']) await studio.visit(`/studio/${page}`, 'main.empty');
      expect(await studio.texts('.top nav a')).toEqual(['Data', 'Files', 'API keys', 'API']);
      await studio.beginAs(root!);
    });
  });
}
