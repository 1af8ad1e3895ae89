import {
  button,
  caller,
  client,
  drawAccount,
  element,
  fill,
  find,
  Hint,
  inTurn,
  onSubmit,
  options,
  startPage,
} from './page.js';

const users = client.collection('users');
const practitioners = client.collection('practitioners');
const openings = client.collection('openings');
const appointments = client.collection('appointments');
const notes = client.collection('notes');

/** The buttons beside each state; the schema's `transitions` decide. */
const NEXT = { booked: { Arrived: 'arrived', Missed: 'missed', Cancel: 'cancelled' }, arrived: { Done: 'done' } };
const dayOf = new Intl.DateTimeFormat('en', { weekday: 'long', day: 'numeric', month: 'long' });
const timeOf = new Intl.DateTimeFormat('en', { hour: '2-digit', minute: '2-digit', hourCycle: 'h23' });
const day = (at) => dayOf.format(new Date(at));
const period = ({ starts_at, ends_at }) => `${timeOf.format(new Date(starts_at))}–${timeOf.format(new Date(ends_at))}`;

/** The instant of a time of the chosen day. */
const instant = (time) => new Date(`${find('#date').value}T${time}`);
let user;
/** The opening, or the appointment, that the open dialog is about. */
let chosen;
let live;

async function draw() {
  user = await caller();
  drawAccount(user);
  const staff = user?.roles.some((role) => ['practitioner', 'desk', 'admin'].includes(role)) ?? false;
  const desk = user?.roles.some((role) => ['desk', 'admin'].includes(role)) ?? false;
  find('#mine').hidden = user === undefined || staff;
  find('#day').hidden = !staff;
  find('#squeeze').hidden = find('#hire').hidden = !desk;
  const { data: all } = await practitioners.list({ sort: ['name'], limit: 100 });
  for (const select of document.querySelectorAll('select[name=practitioner]')) choose(select, all);
  choose(find('#with'), [{ id: '', name: 'everybody' }, ...all]);
  await Promise.all([drawFree(), user !== undefined && !staff && drawMine(), staff ? watchDay(all) : live?.close()]);
}

function choose(select, all) {
  const { value } = select;
  select.replaceChildren(...options(all, ({ name, speciality }) => [name, speciality].filter(Boolean).join(', ')));
  if (all.some(({ id }) => id === value)) select.value = value;
}

async function drawFree() {
  const practitioner = find('#with').value;
  const { data } = await openings.list({
    filter: 'starts_at > @now and none(appointments as a, a.state != "cancelled")',
    ...(practitioner === '' ? {} : { practitioner }),
    sort: ['starts_at'],
    expand: ['practitioner'],
    limit: 60,
  });
  const days = Map.groupBy(data, ({ starts_at }) => day(starts_at));
  find('#free').replaceChildren(
    ...[...days].flatMap(([title, times]) => [
      element('h3', {}, title),
      element('p', { className: 'times' }, ...times.map(timeButton)),
    ]),
    ...(data.length === 0 ? [element('p', { className: 'hint' }, 'No time is free.')] : []),
  );
}

function timeButton(opening) {
  const { name } = opening.expand.practitioner;
  const title = `${name}, ${day(opening.starts_at)}, ${period(opening)}`;
  const made = element('button', { type: 'button' }, period(opening), element('small', {}, name));
  made.addEventListener('click', () => {
    if (user === undefined) return find('#sign-in').showModal();
    chosen = opening;
    find('#book-title').textContent = title;
    find('#book').showModal();
  });
  return made;
}

async function drawMine() {
  const { data } = await appointments.query({
    filter: 'patient = $me and state != "cancelled"',
    params: { me: user.id },
    sort: ['-starts_at'],
    expand: { practitioner: { fields: ['name'] } },
    capabilities: true,
  });
  const { data: written } = await notes.list({ limit: 100 });
  const cards = data.map((appointment) =>
    element(
      'li',
      {},
      element('strong', {}, `${day(appointment.starts_at)}, ${period(appointment)}`),
      element('span', {}, `${appointment.expand.practitioner.name} · ${appointment.state}`),
      ...written
        .filter((note) => note.appointment === appointment.id)
        .map(({ text }) => element('blockquote', {}, text)),
      appointment.state !== 'booked'
        ? undefined
        : appointment.can.update === false
          ? element('span', { className: 'hint' }, 'To cancel it now, please call us.')
          : button('Cancel', () => appointments.update(appointment.id, { state: 'cancelled' }), { className: 'quiet' }),
    ),
  );
  fill(find('#mine ul'), cards);
}

/** The appointments of the chosen day, kept current while others book. */
async function watchDay(all) {
  live?.close();
  const own = all.find(({ person }) => person === user.id && !find('#squeeze').checkVisibility());
  const [from, to] = [instant('00:00').toISOString(), instant('23:59:59').toISOString()];
  live = appointments.live({
    filter: `starts_at >= $from and starts_at <= $to${own === undefined ? '' : ' and practitioner = $own'}`,
    params: { from, to, ...(own === undefined ? {} : { own: own.id }) },
  });
  live.subscribe((records) => inTurn(() => drawDay(records, all, own)));
  await live.ready;
}

async function drawDay(records, all, own) {
  const patients = await namesOf(records.map(({ patient }) => patient));
  const cards = records
    .toSorted((one, other) => one.starts_at.localeCompare(other.starts_at))
    .map((appointment) =>
      element(
        'li',
        {},
        element('strong', {}, `${period(appointment)} ${patients.get(appointment.patient) ?? ''}`),
        element('span', {}, `${all.find(({ id }) => id === appointment.practitioner)?.name} · ${appointment.state}`),
        appointment.reason == null ? undefined : element('span', { className: 'hint' }, appointment.reason),
        element(
          'p',
          { className: 'buttons' },
          ...Object.entries(NEXT[appointment.state] ?? {}).map(([label, state]) =>
            button(label, () => appointments.update(appointment.id, { state }), { className: 'quiet' }),
          ),
          own === undefined || !['arrived', 'done'].includes(appointment.state) ? undefined : noteButton(appointment),
        ),
      ),
    );
  fill(find('#day ul'), cards);
}

const noteButton = (appointment) =>
  element(
    'button',
    {
      type: 'button',
      className: 'quiet',
      onclick: () => {
        chosen = appointment;
        find('#note').showModal();
      },
    },
    'Note',
  );

async function namesOf(ids) {
  const known = ids.filter((id) => id !== undefined);
  if (known.length === 0) return new Map();
  const { data } = await users.query({ filter: 'id in $ids', params: { ids: [...new Set(known)] }, limit: 100 });
  return new Map(data.map(({ id, name, email }) => [id, name ?? email]));
}

async function userOf(email) {
  const { data } = await users.list({ email, limit: 1 });
  if (data.length === 0) throw new Hint(`nobody has registered as ${email}`);
  return data[0].id;
}

onSubmit('#book form', ({ reason }) => {
  const { id: opening, practitioner, starts_at, ends_at } = chosen;
  return appointments.create({ opening, practitioner, starts_at, ends_at, ...(reason === '' ? {} : { reason }) });
});
onSubmit('#note form', ({ text }) => notes.create({ appointment: chosen.id, text }));
onSubmit('#squeeze form', async ({ email, practitioner, from, until, reason }) =>
  appointments.create({
    patient: await userOf(email),
    practitioner,
    starts_at: instant(from).toISOString(),
    ends_at: instant(until).toISOString(),
    ...(reason === '' ? {} : { reason }),
  }),
);
onSubmit('#offer form', ({ practitioner, from, until, minutes }) => {
  const [start, end, step] = [instant(from).getTime(), instant(until).getTime(), Number(minutes) * 60_000];
  const count = Math.max(0, Math.floor((end - start) / step));
  return client.batch(
    Array.from({ length: count }, (_, i) => ({
      op: 'create',
      collection: 'openings',
      data: {
        practitioner,
        starts_at: new Date(start + i * step).toISOString(),
        ends_at: new Date(start + (i + 1) * step).toISOString(),
      },
    })),
  );
});
onSubmit('#hire form', async ({ name, speciality, email }) => {
  const person = await userOf(email);
  await client.batch([
    { op: 'update', collection: 'users', id: person, data: { name, roles: { add: ['practitioner'] } } },
    { op: 'create', collection: 'practitioners', data: { name, speciality, person } },
  ]);
});
find('#date').value = new Date().toLocaleDateString('sv');
find('#date').addEventListener('change', () => inTurn(draw));
find('#with').addEventListener('change', () => inTurn(drawFree));
startPage(draw, { conflict: 'This time is taken.' });
