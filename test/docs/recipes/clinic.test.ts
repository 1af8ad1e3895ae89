// @module-tag long
/** The appointment book of docs/recipes/clinic: over HTTP on both databases, and its pages in a browser. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { describeOnOne, type User } from '../../support/service.ts';
import { Product, showsPages } from './product.ts';

const clinic = new Product('clinic');
const HOUR = 3_600_000;
const inHours = (hours: number): string => new Date(Date.now() + hours * HOUR).toISOString();
/** Hours until a time of the day, three days from now: the tests run at any time, and two times of one day stay on it. */
const hoursUntil = (hour: number): number => {
  const at = new Date();
  at.setDate(at.getDate() + 3);
  return (at.setHours(hour, 0, 0, 0) - Date.now()) / HOUR;
};
afterAll(() => clinic.close());

describeOnOne(
  'the clinic',
  (service) => {
    let [pam, pete, dora, desk]: readonly User[] = [];
    let practitioner: string;
    const create = async (user: User, collection: string, data: object) => {
      const { body, status, text } = await user.client.post(`/api/${collection}`, { data });
      if (status !== 201) throw new Error(text);
      return body.data;
    };
    const offer = async (hours: number) => {
      const times = { starts_at: inHours(hours), ends_at: inHours(hours + 0.5) };
      const { id } = await create(desk!, 'openings', { practitioner, ...times });
      return { opening: id, practitioner, ...times };
    };
    beforeAll(async () => {
      const made = [service.user('patient'), service.user('patient'), service.user('practitioner')] as const;
      [pam, pete, dora, desk] = await Promise.all([...made, service.user('desk')]);
      const doctor = { name: 'Dr Dora', speciality: 'Hearts', person: dora.id };
      ({ id: practitioner } = await create(desk, 'practitioners', doctor));
    });

    test('a race of two patients for a time has one winner, and others see a taken time', async () => {
      const time = await offer(30);
      const answers = await Promise.all(
        [pam, pete].map((user) => user!.client.post('/api/appointments', { data: { ...time, reason: 'Pain' } })),
      );
      expect(answers.map(({ status }) => status).sort()).toEqual([201, 409]);
      const isPam = answers[0]!.status === 201;
      const [winner, other] = isPam ? [pam!, pete!] : [pete!, pam!];
      const { id } = answers[isPam ? 0 : 1]!.body.data;
      const seen = async (user: User) => (await user.client.get(`/api/appointments/${id}`)).body.data;
      expect(await seen(winner)).toMatchObject({ patient: winner.id, reason: 'Pain' });
      expect(Object.keys(await seen(other))).not.toContain('patient');
      const { status, body } = await desk!.client.patch(`/api/appointments/${id}`, { data: { state: 'done' } });
      expect([status, body.errors[0].possible]).toEqual([422, ['arrived', 'missed', 'cancelled']]);
      const cancelled = await winner.client.patch(`/api/appointments/${id}`, { data: { state: 'cancelled' } });
      expect(cancelled.status).toBe(200);
      // The time is free again.
      await create(other, 'appointments', time);
      const history = await winner.client.get(`/api/appointments/${id}/history`);
      expect(
        history.body.data.map(({ action, changed }: { action: string; changed: unknown }) => [action, changed]),
      ).toEqual([
        ['update', ['state']],
        ['create', expect.anything()],
      ]);
    });

    test('a patient who cancels too late is told what to do', async () => {
      const { id } = await create(pam!, 'appointments', await offer(23));
      const { status, body } = await pam!.client.patch(`/api/appointments/${id}`, { data: { state: 'cancelled' } });
      expect([status, body.detail]).toEqual([
        403,
        'patients cancel until 24 hours before the appointment; else please call us',
      ]);
    });

    test('a visitor finds a time, a patient books it, the desk sees it come, and the practitioner writes a note', async () => {
      if (!showsPages(service)) return;
      await offer(hoursUntil(10));
      await offer(hoursUntil(11));
      const page = await clinic.browse(service.url);
      const { view } = page;
      await view.visit('/', '.times button');
      expect(await page.faults('clinic-visitor')).toEqual([]);
      await page.signIn(pete!);
      await view.click('.times button');
      await page.submit('#book form', { reason: 'My knee' });
      await page.shows('#mine .cards', 'booked');
      expect(await page.faults('clinic-patient')).toEqual([]);
      await page.signOut();

      await page.signIn(desk!);
      const { data } = (await desk!.client.post('/api/appointments/query', { filter: 'reason = "My knee"' })).body;
      const openDay = (at: string) =>
        view.page.evaluate(`(() => {
          const date = document.querySelector('#date');
          date.value = new Date(${JSON.stringify(at)}).toLocaleDateString('sv');
          date.dispatchEvent(new Event('change'));
        })()`);
      await openDay(data[0].starts_at);
      await page.shows('#day .cards', pete!.email);
      await page.shows('#day .cards', 'My knee');
      // Others book meanwhile: the list is live.
      const second = (await pam!.client.post('/api/openings/query', { sort: ['-starts_at'], limit: 1 })).body.data[0];
      const { id: opening, starts_at, ends_at } = second;
      await create(pam!, 'appointments', { opening, practitioner, starts_at, ends_at, reason: 'A cough' });
      await page.shows('#day .cards', 'A cough');
      await view.click('#day button', 'Arrived');
      await page.shows('#day .cards', 'arrived');
      await view.page.evaluate(`document.querySelector('#offer').open = true`);
      expect(await page.faults('clinic-desk')).toEqual([]);
      await openDay(inHours(240));
      await page.submit('#offer form', { from: '06:00', until: '07:00', minutes: '30' });
      await page.shows('.times', '06:30');
      await page.signOut();

      await page.signIn(dora!);
      await openDay(data[0].starts_at);
      await view.click('#day button', 'Note');
      await page.submit('#note form', { text: 'Rest the knee' });
      await view.page.until(`!document.querySelector('#note').open`);
      await page.signOut();
      await page.signIn(pete!);
      await page.shows('#mine blockquote', 'Rest the knee');
    });

    test('the desk hires a practitioner and squeezes a patient in, who cancels in time, and not later', async () => {
      if (!showsPages(service)) return;
      const page = await clinic.browse(service.url);
      const { view } = page;
      const [doc, poll] = [await service.user('patient'), await service.user('patient')];
      const openDay = (at: string) =>
        view.page.evaluate(`(() => {
          const date = document.querySelector('#date');
          date.value = new Date(${JSON.stringify(at)}).toLocaleDateString('sv');
          date.dispatchEvent(new Event('change'));
        })()`);
      const book = (from: string, until: string, email = poll.email) =>
        page.submit('#squeeze form', { email, from, until, reason: 'Urgent' });

      await view.visit('/', '#account button');
      await page.signIn(desk!);
      await page.submit('#hire form', { name: 'Dr Doc', speciality: 'Feet', email: doc.email });
      const own = `[...document.querySelectorAll('#squeeze option')].find(({ textContent }) => textContent === 'Dr Doc, Feet')`;
      await view.page.until(own);
      await view.page.evaluate(`document.querySelector('#squeeze select').value = ${own}.value`);
      await openDay(inHours(500));
      await view.page.evaluate(`document.querySelector('#squeeze').open = true`);
      await book('09:00', '09:30', 'nobody@example.org');
      await page.shows('main > [role=alert]', 'nobody has registered as nobody@example.org');
      await book('09:00', '09:30');
      await page.shows('#day .cards', 'Urgent');
      await book('09:15', '09:45');
      await page.shows('main > [role=alert]', 'This time is taken.');
      await book('09:45', '09:40');
      await page.shows('main > [role=alert]', 'ends before it starts');
      expect(await page.faults('clinic-squeeze')).toEqual([]);
      await page.signOut();

      await page.signIn(poll);
      await page.shows('#mine .cards', 'Dr Doc · booked');
      await view.click('#mine button', 'Cancel');
      await view.page.until(`!document.querySelector('#mine .cards').textContent.includes('Dr Doc')`);
      const late = await offer(20);
      await create(poll, 'appointments', late);
      await view.visit('/?late', '#mine .cards');
      await page.shows('#mine .cards', 'To cancel it now, please call us.');
      expect(await view.texts('#mine button')).toEqual([]);
      await page.signOut();

      // A new person registers on the page, and finds no practitioner's tools.
      await view.click('#account button', 'Sign in');
      await page.submit('#sign-in form', { email: 'nell@example.org', password: 'lovelace and babbage' }, 'register');
      await page.shows('#account', 'nell@example.org');
      expect(await view.page.evaluate(`document.querySelector('#day').hidden`)).toBe(true);
      await page.signOut();

      await page.signIn(doc);
      await page.shows('#account', 'Dr Doc');
      await view.page.until(`!document.querySelector('#day').hidden && document.querySelector('#hire').hidden`);
    });
  },
  { schema: clinic.schema, env: { BYLAW_PUBLIC: clinic.site } },
);
