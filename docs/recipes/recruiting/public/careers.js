import { button, caller, client, element, fill, find, inTurn, onSubmit, startPage } from './page.js';

const jobs = client.collection('jobs');
const submissions = client.collection('submissions');
let chosen;

async function draw() {
  await caller();
  const q = find('#search').value;
  const { data } = await jobs.query({
    filter: `status = "open"${q === '' ? '' : ' and title matches $q'}`,
    ...(q === '' ? {} : { params: { q } }),
    sort: ['-id'],
    limit: 50,
    expand: { organisation: { fields: ['name'] } },
  });
  fill(
    find('#jobs'),
    data.map((job) =>
      element(
        'li',
        {},
        element('strong', {}, job.title),
        element('span', { className: 'hint' }, job.expand.organisation.name),
        element('p', {}, job.description),
        button('Apply', async () => {
          chosen = job;
          find('#apply-title').textContent = job.title;
          find('#apply').showModal();
        }),
      ),
    ),
  );
}

onSubmit('#apply form', async (letter) => {
  await submissions.create({ job: chosen.id, ...letter });
  find('#thanks').textContent = `Thank you, ${letter.name}. We have your application as ${chosen.title}.`;
});
find('#search').addEventListener('input', () => inTurn(draw));
startPage(draw);
