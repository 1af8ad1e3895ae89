// @module-tag long
/** The tracker of docs/recipes/recruiting: over HTTP on both databases, its worker, and its pages in a browser. */
import { spawn } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { sql, uuid } from '../../../src/sql.ts';
import { SmtpServer } from '../../auth/mail/smtp-server.ts';
import type { Client } from '../../support/client.ts';
import { describeOnOne, type User } from '../../support/service.ts';
import { until } from '../../support/until.ts';
import { Product, showsPages } from './product.ts';

const tracker = new Product('recruiting');
const inDays = (days: number): string => new Date(Date.now() + days * 86_400_000).toISOString();
/** The service writes mails into it as files. */
const data = mkdtempSync(join(tmpdir(), 'bylaw-tracker-'));
afterAll(async () => {
  await tracker.close();
  rmSync(data, { recursive: true, force: true });
});

function verificationLinkOf(email: string): string | undefined {
  const files = readdirSync(data, { recursive: true, encoding: 'utf8' }).filter((file) => file.endsWith('.eml'));
  const mails = files.map((file) => readFileSync(join(data, file), 'utf8').replaceAll(/=\r?\n/g, ''));
  const mail = mails.find((each) => each.includes(`To: ${email}`));
  return /http:\S+\/auth\/verify\?token=\S+/.exec(mail?.replaceAll('=3D', '=') ?? '')?.[0];
}

test('both products have the same script and style of pages', () => {
  for (const file of ['page.js', 'style.css']) {
    const [here, there] = ['recruiting', 'clinic'].map((name) =>
      readFileSync(resolve(import.meta.dirname, `../../../docs/recipes/${name}/public/${file}`), 'utf8'),
    );
    expect(here).toBe(there);
  }
});

describeOnOne(
  'the recruiting tracker',
  (service) => {
    let [olga, ivy, ada, noel]: readonly User[] = [];
    let guest: Client;
    let organisation: string;
    let job: string;
    const create = async ({ client }: Pick<User, 'client'>, collection: string, data: object): Promise<string> => {
      const { body, status, text } = await client.post(`/api/${collection}`, { data });
      if (status !== 201) throw new Error(text);
      return body.data.id;
    };
    const namesOf = async ({ client }: Pick<User, 'client'>, path: string): Promise<readonly string[]> =>
      (await client.get(path)).body.data.map(({ name }: { name: string }) => name);

    beforeAll(async () => {
      const people = [service.user(), service.user(), service.user(), service.user()] as const;
      [olga, ivy, ada, noel] = await Promise.all(people);
      await service.app.db.run(sql`UPDATE users SET email_verified = false WHERE id = ${uuid(noel.id)}`);
      const started = await service.anonymous.post('/api/auth/guest');
      guest = service.anonymous.with({ Authorization: `Bearer ${started.body.access_token}` });
      const founded = await olga.client.post('/api/batch', {
        operations: [
          { op: 'create', collection: 'organisations', data: { name: 'Acme' }, as: 'founded' },
          { op: 'create', collection: 'memberships', data: { organisation: { $ref: 'founded' }, role: 'owner' } },
        ],
      });
      expect([founded.status, founded.text]).toEqual([200, founded.text]);
      organisation = founded.body.data[0].data.id;
      const data = { organisation, title: 'Smith', description: 'Iron', status: 'open', salary: 50_000 };
      job = await create(olga, 'jobs', data);
    });

    test('an invitation is seen once the address is verified, and lets its holder in once', async () => {
      const invite = async ({ email }: User) => {
        const data = { organisation, email: email.toUpperCase(), role: 'interviewer', expires_at: inDays(7) };
        return { organisation, role: 'interviewer', invitation: await create(olga!, 'invitations', data) };
      };
      const unseen = await invite(noel!);
      expect((await noel!.client.post('/api/memberships', { data: unseen })).status).toBe(422);
      const data = await invite(ivy!);
      const join = () => ivy!.client.post('/api/memberships', { data });
      const joined = await join();
      expect(joined.status).toBe(201);
      const left = await ivy!.client.patch(`/api/memberships/${joined.body.data.id}`, { data: { active: false } });
      expect([left.status, (await join()).status]).toEqual([200, 409]);
      expect((await ivy!.client.get(`/api/memberships?organisation=${organisation}`)).body.data).toHaveLength(1);
      const back = await olga!.client.patch(`/api/memberships/${joined.body.data.id}`, { data: { active: true } });
      expect(back.status).toBe(200);
    });

    test('a visitor applies and reads nothing back; a recruiter takes the letter in', async () => {
      const seen = await guest.get(`/api/jobs/${job}?expand=organisation`);
      expect([seen.body.data.expand.organisation.name, 'salary' in seen.body.data]).toEqual(['Acme', false]);
      const letter = { job, name: 'Sue', email: 'Sue@Example.org', letter: 'Hello' };
      const { status, body } = await guest.post('/api/submissions', { data: letter });
      expect([status, Object.keys(body.data)]).toEqual([201, ['id']]);
      expect((await guest.get(`/api/submissions/${body.data.id}`)).status).toBe(403);
      const data = { name: 'Sue', source: 'careers', organisation };
      const taken = await olga!.client.put('/api/candidates/by/email/sue@example.org', { data });
      expect(taken.status).toBe(201);
      await create(olga!, 'applications', { job, candidate: taken.body.data.id });
      const again = await olga!.client.put('/api/candidates/by/email/sue@example.org', { data });
      expect([again.status, again.body.data.id]).toEqual([200, taken.body.data.id]);
    });

    test('an agency proposes a candidate for a shared job, and sees its own candidates only', async () => {
      const propose = () =>
        ada!.client.post('/api/batch', {
          operations: [
            {
              op: 'create',
              collection: 'candidates',
              data: { organisation, name: 'Carl', email: 'carl@example.org', source: 'agency' },
              as: 'carl',
            },
            { op: 'create', collection: 'applications', data: { job, candidate: { $ref: 'carl' } } },
          ],
        });
      expect((await propose()).status).toBe(403);
      const share = await create(olga!, 'shares', { job, email: ada!.email, until: inDays(30) });
      expect((await propose()).status).toBe(200);
      expect(await namesOf(ada!, '/api/candidates')).toEqual(['Carl']);
      expect(await namesOf(olga!, '/api/candidates')).toEqual(['Sue', 'Carl']);
      expect('salary' in (await ada!.client.get(`/api/jobs/${job}`)).body.data).toBe(false);
      expect((await olga!.client.delete(`/api/shares/${share}`)).status).toBe(204);
      const more = { organisation, name: 'Cleo', email: 'cleo@example.org', source: 'agency' };
      expect((await ada!.client.post('/api/candidates', { data: more })).status).toBe(403);
    });

    test('two recruiters who race for an interviewer plan one interview, and an offer needs it', async () => {
      const { body } = await olga!.client.get(`/api/applications?job=${job}`);
      const [application] = body.data;
      const move = (stage: string) => olga!.client.patch(`/api/applications/${application.id}`, { data: { stage } });
      expect((await move('offer')).body.code).toBe('transition_refused');
      for (const stage of ['screening', 'interview']) expect((await move(stage)).status).toBe(200);
      expect((await move('offer')).body.errors[0].detail).toBe('an interview comes before an offer');
      const data = { application: application.id, interviewer: ivy!.id, starts_at: inDays(1), ends_at: inDays(2) };
      const planned = await Promise.all([1, 2].map(() => olga!.client.post('/api/interviews', { data })));
      expect(planned.map(({ status }) => status).sort()).toEqual([201, 409]);
      const interview = planned.find(({ status }) => status === 201)!.body.data.id;
      await create(ivy!, 'scorecards', { interview, rating: 4, text: 'Good' });
      expect((await move('offer')).status).toBe(200);
    });

    test('a job is deleted once it is closed, and comes back with its history', async () => {
      const spare = await create(olga!, 'jobs', { organisation, title: 'Cook', description: 'Soup', status: 'open' });
      const refused = await olga!.client.delete(`/api/jobs/${spare}`);
      expect([refused.status, refused.body.detail]).toEqual([403, 'close the job first']);
      await olga!.client.patch(`/api/jobs/${spare}`, { data: { status: 'closed' } });
      expect((await olga!.client.delete(`/api/jobs/${spare}`)).status).toBe(204);
      expect((await olga!.client.post(`/api/jobs/${spare}/restore`)).status).toBe(200);
      const { data } = (await olga!.client.get(`/api/jobs/${spare}/history`)).body;
      expect(data.map(({ action }: { action: string }) => action)).toEqual(['create', 'delete', 'update', 'create']);
    });

    test('the worker thanks a visitor who applies', async () => {
      if (!showsPages(service)) return;
      const mails = new SmtpServer();
      await mails.start();
      const folder = mkdtempSync(join(tmpdir(), 'bylaw-worker-'));
      const limit = { submissions: ['list'] };
      const key = (await service.app.auth.apiKeys.create({ name: 'mailer', roles: ['mailer'], limit })).secret;
      const modules = {
        'bylaw/events': resolve(import.meta.dirname, '../../../src/events/events.ts'),
        nodemailer: createRequire(import.meta.url).resolve('nodemailer'),
      };
      const text = Object.entries(modules).reduce(
        (source, [name, file]) => source.replace(`'${name}'`, `'${pathToFileURL(file)}'`),
        readFileSync(join(tracker.folder, 'worker.mjs'), 'utf8'),
      );
      writeFileSync(join(folder, 'worker.mjs'), text);
      const env = {
        ...process.env,
        BYLAW_URL: service.url,
        BYLAW_KEY: key,
        SMTP_URL: mails.url,
        MAIL_FROM: 'a@acme.org',
      };
      const worker = spawn(process.execPath, ['worker.mjs'], {
        cwd: folder,
        env,
        stdio: ['ignore', 'ignore', 'inherit'],
      });
      try {
        const hasPosition = (): boolean => {
          try {
            return readFileSync(join(folder, 'submissions.position'), 'utf8') !== '';
          } catch {
            return false;
          }
        };
        await until('the worker has a position', async () => hasPosition());
        const letter = { job, name: 'Sam', email: 'sam@example.org', letter: 'Hello' };
        expect((await guest.post('/api/submissions', { data: letter })).status).toBe(201);
        await until('the mail arrives', async () => mails.to('sam@example.org').length > 0);
        expect(mails.to('sam@example.org')[0]!.source).toContain('Dear Sam,');
      } finally {
        worker.kill();
        mails.close();
        rmSync(folder, { recursive: true, force: true });
      }
    });

    test('a visitor applies on the careers page, and the tracker follows the application to an interview', async () => {
      if (!showsPages(service)) return;
      const page = await tracker.browse(service.url);
      const { view } = page;
      await view.visit('/careers.html', '#jobs button');
      expect(await page.faults('careers')).toEqual([]);
      await view.click('#jobs button', 'Apply');
      expect(await page.faults('careers-apply')).toEqual([]);
      await page.submit('#apply form', { name: 'Tess', email: 'tess@example.org', letter: 'I forge' });
      await page.shows('#thanks', 'Thank you, Tess');

      await view.visit('/', '#account button');
      await page.signIn(olga!);
      await page.shows('#inbox .cards', 'I forge');
      await page.press('#inbox li', 'Tess', 'Take in');
      await page.shows('#board section[aria-label=applied] li', 'Tess');
      expect(await page.faults('tracker')).toEqual([]);
      await page.press('#board li', 'Tess', 'Open');
      await page.shows('#application', 'tess@example.org');
      expect(await page.faults('tracker-application')).toEqual([]);
      await page.submit('#application #move', { stage: 'rejected' });
      await page.shows('#application [role=alert]', 'a rejection needs a reason');
      await page.submit('#application #move', { stage: 'screening' });
      await page.shows('#board section[aria-label=screening] li', 'Tess');
      await page.submit('#invite form', { email: 'ines@example.org', role: 'interviewer' });
      await page.press('#people li', 'ines@example.org', 'Withdraw');
      await view.page.until(`!document.querySelector('#people').textContent.includes('ines@example.org')`);
      await page.signOut();
    });

    test('an invited person joins by a click, and two interviewers judge before they read each other', async () => {
      if (!showsPages(service)) return;
      const page = await tracker.browse(service.url);
      const { view } = page;
      const isHidden = (selector: string) =>
        view.page.evaluate<boolean>(`!document.querySelector(${JSON.stringify(selector)}).checkVisibility()`);
      const openTess = async (): Promise<void> => {
        await page.press('#board li', 'Tess', 'Open');
        await view.page.until(`document.querySelector('#application').open`);
      };
      const closed = () => view.page.until(`!document.querySelector('#application').open`);
      /** For a field of a form: local time without a zone. */
      const at = (days: number, hour: number): string => {
        const day = new Date(Date.now() + days * 86_400_000);
        return `${day.toLocaleDateString('sv')}T${String(hour).padStart(2, '0')}:00`;
      };
      const plan = (interviewer: User, days: number, hour: number) =>
        page.submit('#plan', { interviewer: interviewer.id, starts_at: at(days, hour), ends_at: at(days, hour + 1) });

      await view.visit('/', '#account button');
      await page.signIn(noel!);
      await page.press('#joining li', 'Verify your address', 'Send the mail');
      await until('the mail arrives', async () => verificationLinkOf(noel!.email) !== undefined);
      await view.visit(verificationLinkOf(noel!.email)!.slice(service.url.length), 'form button');
      await view.click('form button');
      await view.page.until(`document.readyState === 'complete' && document.querySelector('form') === null`);
      await view.visit('/', '#joining button');
      await page.press('#joining li', 'Acme', 'Join');
      await page.shows('#people li', noel!.email);
      await view.page.until(`document.querySelector('#joining').hidden`);
      expect(await isHidden('#new-job')).toBe(true);
      await page.signOut();

      await page.signIn(olga!);
      await openTess();
      await page.submit('#move', { stage: 'interview' });
      await page.shows('#board section[aria-label=interview] li', 'Tess');
      await openTess();
      await plan(ivy!, 5, 10);
      await closed();
      await openTess();
      await page.shows('#application-interviews li', ivy!.email);
      await plan(ivy!, 5, 10);
      await page.shows('#application [role=alert]', 'The interviewer has another interview at this time.');
      await plan(noel!, 5, 10);
      await closed();
      await openTess();
      await page.shows('#application-interviews li', noel!.email);
      expect(await isHidden('#score')).toBe(true);
      await view.page.evaluate(`(() => {
        const files = new DataTransfer();
        files.items.add(new File(['%PDF-1.4'], 'tess.pdf', { type: 'application/pdf' }));
        document.querySelector('#attach input').files = files.files;
      })()`);
      await page.submit('#attach', {});
      await closed();
      await openTess();
      await page.shows('#application-about a', 'CV');
      await page.submit('#write', { text: 'Ask about anvils' });
      await closed();
      await page.signOut();

      await page.signIn(ivy!);
      await openTess();
      await page.shows('#application-about a', 'CV');
      expect(await Promise.all(['#move', '#plan', '#write', '#attach'].map(isHidden))).toEqual([
        true,
        true,
        true,
        true,
      ]);
      expect(await page.faults('tracker-scorecard')).toEqual([]);
      await page.submit('#score', { rating: '9', text: 'Too good' });
      expect(await view.page.evaluate(`document.querySelector('#score input').validity.rangeOverflow`)).toBe(true);
      await page.submit('#score', { rating: '4', text: 'A steady hand' });
      await closed();
      await openTess();
      await page.shows('#application-interviews blockquote', '4 of 5: A steady hand');
      expect(await isHidden('#score')).toBe(true);
      await view.click('#application [value=cancel]', 'Close');
      await page.signOut();

      await page.signIn(noel!);
      await openTess();
      await page.shows('#application-interviews li', ivy!.email);
      expect(await view.texts('#application-interviews blockquote')).toEqual([]);
      await page.submit('#score', { rating: '2', text: 'A weak arm' });
      await closed();
      await openTess();
      await page.shows('#application-interviews blockquote', '4 of 5: A steady hand');
      await page.shows('#application-interviews blockquote', '2 of 5: A weak arm');
      await view.click('#application [value=cancel]', 'Close');
      await page.press('#people li', noel!.email, 'Leave');
      await view.page.until(`document.querySelector('#work').hidden`);
      await page.signOut();

      await page.signIn(olga!);
      await openTess();
      await page.shows('#application-notes blockquote', 'Ask about anvils');
      await page.submit('#move', { stage: 'offer' });
      await page.shows('#board section[aria-label=offer] li', 'Tess');
      await page.signOut();
    });

    test('an agency founds an organisation of its own, whose job goes from a draft to the bin', async () => {
      if (!showsPages(service)) return;
      const page = await tracker.browse(service.url);
      const { view } = page;
      await view.visit('/', '#account button');
      await page.signIn(ada!);
      // An agency that is invited to nothing sees no organisation.
      expect(await view.page.evaluate(`document.querySelector('#work').hidden`)).toBe(true);
      await page.submit('#found form', { name: 'Bolt' });
      await page.shows('#people li', 'owner');
      await page.press('#people li', 'owner', 'Leave');
      await page.shows('main > [role=alert]', 'the last owner stays');
      await page.submit('#new-job form', { title: 'Driver', salary: '40000', description: 'A van' });
      await page.shows('#job-state', 'draft, 40,000 a year');
      await view.click('#job-buttons button', 'Open');
      await page.shows('#job-state', 'open');
      await page.submit('#propose form', { name: 'Cy', email: 'cy@example.org' });
      await page.shows('#board section[aria-label=applied] li', 'Cy');
      await page.submit('#propose form', { name: 'Cy', email: 'cy@example.org' });
      await page.shows('main > [role=alert]', 'This person is on the list already.');
      await view.click('#job-buttons button', 'Delete');
      await page.shows('main > [role=alert]', 'close the job first');
      await view.click('#job-buttons button', 'Close');
      await page.shows('#job-state', 'closed');
      await view.click('#job-buttons button', 'Delete');
      await page.shows('#job-state', 'No job yet');
    });
  },
  { schema: tracker.schema, env: { BYLAW_PUBLIC: tracker.site, BYLAW_DATA: data } },
);
