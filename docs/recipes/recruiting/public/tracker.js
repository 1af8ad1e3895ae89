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

const organisations = client.collection('organisations');
const memberships = client.collection('memberships');
const invitations = client.collection('invitations');
const jobs = client.collection('jobs');
const candidates = client.collection('candidates');
const submissions = client.collection('submissions');
const applications = client.collection('applications');
const interviews = client.collection('interviews');
const scorecards = client.collection('scorecards');
const notes = client.collection('notes');

/** The columns of the board with what may follow; the schema's `transitions` decide. */
const NEXT = {
  applied: ['screening', 'rejected'],
  screening: ['interview', 'rejected'],
  interview: ['offer', 'rejected'],
  offer: ['hired', 'rejected'],
  hired: [],
  rejected: [],
};
const JOB_STATES = { draft: { Open: 'open' }, open: { Close: 'closed' }, closed: { 'Open again': 'open' } };
const timeOf = new Intl.DateTimeFormat('en', { dateStyle: 'medium', timeStyle: 'short', hourCycle: 'h23' });
const WEEK = 7 * 24 * 3_600_000;
let user;
let organisation;
let job;
/** The application of the open dialog, and the interview of the user that has no scorecard yet. */
let chosen;
let unscored;

const choose = (select, records, text) => {
  const { value } = select;
  select.replaceChildren(...options(records, text));
  if (records.some(({ id }) => id === value)) select.value = value;
  return records.find(({ id }) => id === select.value);
};

async function draw() {
  user = await caller();
  drawAccount(user);
  find('#welcome').hidden = user !== undefined;
  find('#start').hidden = user === undefined;
  if (user === undefined) {
    for (const section of ['#work', '#joining']) find(section).hidden = true;
    return;
  }
  await drawInvitations();
  // The organisations of the user, and those of jobs that are shared with an agency.
  const { data: own } = await memberships.query({ filter: 'user = $me and active', params: { me: user.id } });
  const { data: shared } = await client.collection('shares').query({
    filter: 'email = $email and until > @now',
    params: { email: user.email },
    expand: { job: true },
  });
  const ids = [...own.map((each) => each.organisation), ...shared.map((each) => each.expand.job.organisation)];
  const { data: all } = await organisations.query({
    filter: 'id in $ids',
    params: { ids: [...new Set(ids)] },
    sort: ['name'],
  });
  organisation = choose(find('#organisation'), all, ({ name }) => name);
  find('#which').hidden = find('#work').hidden = organisation === undefined;
  if (organisation === undefined) return;
  const role = own.find((each) => each.organisation === organisation.id)?.role;
  const isRecruiter = ['owner', 'recruiter'].includes(role);
  for (const part of ['#new-job', '#inbox', '#invite', '#plan', '#attach']) find(part).hidden = !isRecruiter;
  find('#people').hidden = role === undefined;
  const { data: offered } = await jobs.list({
    organisation: organisation.id,
    sort: ['-status', '-id'],
    limit: 100,
  });
  job = choose(find('#job'), offered, ({ title }) => title);
  find('#propose').hidden = job === undefined || !(isRecruiter || role === undefined);
  await Promise.all([
    drawJob(isRecruiter),
    drawBoard(),
    isRecruiter && drawInbox(),
    role !== undefined && drawPeople(isRecruiter),
  ]);
}

async function drawInvitations() {
  const { data } = await invitations.query({
    filter: 'email = $email and expires_at > @now and count(memberships) = 0',
    params: { email: user.email },
    expand: { organisation: { fields: ['name'] } },
  });
  const cards = data.map(({ id, role, organisation: to, expand }) =>
    element(
      'li',
      {},
      element('strong', {}, expand.organisation.name),
      element('span', {}, `as ${role}`),
      button('Join', () => memberships.create({ organisation: to, role, invitation: id })),
    ),
  );
  if (!user.email_verified)
    cards.push(
      element(
        'li',
        {},
        element('span', {}, 'Verify your address to see invitations, by the link of a mail.'),
        button('Send the mail', () => client.account.requestVerification(), { className: 'quiet' }),
      ),
    );
  find('#joining').hidden = cards.length === 0;
  fill(find('#joining ul'), cards);
}

function drawJob(isRecruiter) {
  const salary = job?.salary == null ? '' : `, ${job.salary.toLocaleString('en')} a year`;
  find('#job-state').textContent = job === undefined ? 'No job yet' : `${job.status}${salary}`;
  const moves = job === undefined || !isRecruiter ? {} : JOB_STATES[job.status];
  find('#job-buttons').replaceChildren(
    ...Object.entries(moves).map(([text, status]) => button(text, () => jobs.update(job.id, { status }))),
    ...(job === undefined || !isRecruiter ? [] : [button('Delete', () => jobs.delete(job.id), { className: 'quiet' })]),
  );
}

async function drawInbox() {
  const { data } =
    job === undefined ? { data: [] } : await submissions.list({ job: job.id, state: 'new', sort: ['id'], limit: 50 });
  const cards = data.map((letter) =>
    element(
      'li',
      {},
      element('strong', {}, letter.name),
      element('span', { className: 'hint' }, letter.email),
      element('p', {}, letter.letter),
      element(
        'p',
        { className: 'buttons' },
        button('Take in', () => takeIn(letter)),
        button('Decline', () => submissions.update(letter.id, { state: 'declined' }), { className: 'quiet' }),
      ),
    ),
  );
  fill(find('#inbox ul'), cards);
}

/** A person who has applied before is the same candidate: the address is unique within the organisation. */
async function takeIn({ id, name, email }) {
  const data = { name, source: 'careers', organisation: organisation.id };
  const candidate = await candidates.upsert('email', email, data);
  await client.batch([
    { op: 'create', collection: 'applications', data: { job: job.id, candidate: candidate.id } },
    { op: 'update', collection: 'submissions', id, data: { state: 'taken' } },
  ]);
}

async function drawBoard() {
  const { data } =
    job === undefined
      ? { data: [] }
      : await applications.query({
          filter: 'job = $job',
          params: { job: job.id },
          sort: ['id'],
          limit: 100,
          expand: { candidate: { fields: ['name'] }, interviews: { count: true } },
        });
  const columns = Object.keys(NEXT).map((stage) => {
    const cards = data.filter((application) => application.stage === stage).map(boardCard);
    const list = element('ul', { className: 'cards' });
    fill(list, cards);
    return element('section', { ariaLabel: stage }, element('h3', {}, `${stage} (${cards.length})`), list);
  });
  find('#board').replaceChildren(...columns);
}

const boardCard = (application) =>
  element(
    'li',
    {},
    element('strong', {}, application.expand.candidate?.name ?? 'hidden'),
    element('span', { className: 'hint' }, `interviews: ${application.interviews_count ?? 0}`),
    button('Open', () => openApplication(application.id), { className: 'quiet' }),
  );

/** Others may have changed it since the board was drawn. */
async function openApplication(id) {
  const { data } = await applications.query({
    filter: 'id = $id',
    params: { id },
    expand: { candidate: true },
    capabilities: true,
  });
  const [application] = data;
  if (application?.expand.candidate == null) throw new Hint('The application is gone.');
  chosen = application;
  const { name, email, cv } = application.expand.candidate;
  find('#application-title').textContent = name;
  const about = [`${application.stage} · ${email}`];
  if (cv !== null) about.push(' · ', element('a', { href: (await client.link(cv)).url, target: '_blank' }, 'CV'));
  find('#application-about').replaceChildren(...about);
  const mayDecide = application.can.update !== false;
  find('#move').hidden = !mayDecide || NEXT[application.stage].length === 0;
  find('#write').hidden = !mayDecide;
  find('#move select').replaceChildren(...NEXT[application.stage].map((stage) => element('option', {}, stage)));
  await Promise.all([drawInterviews(), drawNotes()]);
  find('#application').showModal();
}

async function drawInterviews() {
  const { data } = await interviews.query({
    filter: 'application = $application',
    params: { application: chosen.id },
    sort: ['starts_at'],
    limit: 100,
    expand: { interviewer: true, scorecards: true },
  });
  const cards = data.map(({ starts_at, expand: { interviewer, scorecards: written } }) =>
    element(
      'li',
      {},
      element('strong', {}, interviewer?.name ?? interviewer?.email ?? 'hidden'),
      element('span', { className: 'hint' }, timeOf.format(new Date(starts_at))),
      ...written.map(({ rating, text }) => element('blockquote', {}, `${rating} of 5: ${text}`)),
    ),
  );
  fill(find('#application-interviews'), cards);
  unscored = data.find(({ interviewer, expand }) => interviewer === user.id && expand.scorecards.length === 0);
  find('#score').hidden = unscored === undefined;
}

async function drawNotes() {
  const { data } = await notes.list({ application: chosen.id, sort: ['-id'], limit: 50 });
  find('#application-notes').replaceChildren(
    ...data.map((note) => element('blockquote', {}, note.text, note.private ? ' (for me alone)' : '')),
  );
}

async function drawPeople(isRecruiter) {
  const { data } = await memberships.query({
    filter: 'organisation = $of and active',
    params: { of: organisation.id },
    sort: ['id'],
    limit: 100,
    expand: { user: true },
    capabilities: true,
  });
  const nameOf = ({ expand }) => expand.user?.name ?? expand.user?.email ?? 'hidden';
  choose(
    find('#plan select'),
    data.map((each) => ({ id: each.user, name: nameOf(each) })),
    ({ name }) => name,
  );
  const cards = data.map((each) =>
    element(
      'li',
      {},
      element('strong', {}, nameOf(each)),
      element('span', {}, each.role),
      each.can.update === false
        ? undefined
        : button(each.user === user.id ? 'Leave' : 'Remove', () => memberships.update(each.id, { active: false }), {
            className: 'quiet',
          }),
    ),
  );
  fill(find('#people ul'), [...cards, ...(isRecruiter ? await invited() : [])]);
}

/** The invitations that wait. */
async function invited() {
  const { data } = await invitations.query({
    filter: 'organisation = $organisation and expires_at > @now and count(memberships) = 0',
    params: { organisation: organisation.id },
    sort: ['id'],
    limit: 100,
  });
  return data.map(({ id, email, role }) =>
    element(
      'li',
      {},
      element('strong', {}, email),
      element('span', {}, `invited as ${role}`),
      button('Withdraw', () => invitations.delete(id), { className: 'quiet' }),
    ),
  );
}

onSubmit('#found form', ({ name }) =>
  client.batch([
    { op: 'create', collection: 'organisations', data: { name }, as: 'founded' },
    { op: 'create', collection: 'memberships', data: { organisation: { $ref: 'founded' }, role: 'owner' } },
  ]),
);
onSubmit('#new-job form', ({ title, salary, description }) =>
  jobs.create({
    organisation: organisation.id,
    title,
    description,
    ...(salary === '' ? {} : { salary: Number(salary) }),
  }),
);
onSubmit('#invite form', ({ email, role }) =>
  invitations.create({
    organisation: organisation.id,
    email,
    role,
    expires_at: new Date(Date.now() + WEEK).toISOString(),
  }),
);
// An agency and a recruiter do the same: both records, or none of them.
onSubmit('#propose form', ({ name, email }) =>
  client.batch([
    {
      op: 'create',
      collection: 'candidates',
      data: { name, email, organisation: organisation.id, source: find('#people').hidden ? 'agency' : 'search' },
      as: 'person',
    },
    { op: 'create', collection: 'applications', data: { job: job.id, candidate: { $ref: 'person' } } },
  ]),
);
onSubmit('#move', ({ stage, reason }) =>
  applications.update(chosen.id, { stage, ...(reason === '' ? {} : { reason }) }),
);
onSubmit('#plan', ({ interviewer, starts_at, ends_at }) =>
  interviews.create({
    application: chosen.id,
    interviewer,
    starts_at: new Date(starts_at).toISOString(),
    ends_at: new Date(ends_at).toISOString(),
  }),
);
onSubmit('#score', ({ rating, text }) => scorecards.create({ interview: unscored.id, rating: Number(rating), text }));
onSubmit('#write', ({ text, private: isPrivate }) =>
  notes.create({ application: chosen.id, text, private: isPrivate === 'on' }),
);
onSubmit('#attach', async ({ cv }) => {
  const file = await client.upload(cv);
  await candidates.update(chosen.candidate, { cv: file.id });
});
for (const select of ['#organisation', '#job']) find(select).addEventListener('change', () => inTurn(draw));
startPage(draw, {
  conflict: 'The interviewer has another interview at this time.',
  unique_violation: 'This person is on the list already.',
});
