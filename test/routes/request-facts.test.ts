/** Facts of the request in rules: its address, method, origin and the kind of its caller. */
import { expect, test } from 'vitest';
import { describeOnOne } from '../support/service.ts';

const SCHEMA = `
roles: [member, admin]
register: { roles: [member] }
guests: true
collections:
  inside:
    fields: { title: { type: string, required: true, max: 20 } }
    access: { view: '@request.ip in ["127.0.0.0/8", "::1"]', create: '@request.ip not in ["127.0.0.0/8", "::1"]' }
  pages:
    fields: { title: { type: string, required: true, max: 20 } }
    access: { view: '@request.origin = "https://app.example.com"', create: '@request.method = "POST" and @request.kind = "user"' }
  notes:
    fields: { title: { type: string, required: true, max: 20 } }
    access: { view: true, create: '@request.data.title = @request.query.expected' }
  clocks:
    fields: { title: { type: string, required: true, max: 20 } }
    access: { view: '@now.hour >= 0 and @now.weekday >= 1', create: '@now.hour < 0 or @now.weekday > 7' }
`;

describeOnOne(
  'facts of the request',
  (service) => {
    test('facts decide before any record is read, and no header makes up an address', async () => {
      const { client } = await service.user();
      expect((await client.get('/api/inside')).status).toBe(200);
      for (const name of ['X-Forwarded-For', 'Forwarded', 'X-Real-IP', 'True-Client-IP']) {
        const headers = { [name]: name === 'Forwarded' ? 'for=203.0.113.9' : '203.0.113.9' };
        expect((await client.get('/api/inside', headers)).status).toBe(200);
        expect((await client.post('/api/inside', { data: { title: 'x' } }, headers)).status).toBe(403);
      }
    });

    test('the origin is that of the header, and its absence denies', async () => {
      const { client } = await service.user();
      const statuses = [];
      for (const origin of ['https://app.example.com', 'https://app.example.com.evil.example', 'null', undefined])
        statuses.push((await client.get('/api/pages', origin === undefined ? {} : { Origin: origin })).status);
      expect(statuses).toEqual([200, 403, 403, 403]);
      expect((await client.get('/api/pages?origin=https%3A%2F%2Fapp.example.com')).status).toBe(403);
    });

    test('the kind of the caller and the method are those of the request', async () => {
      const { client } = await service.user();
      expect((await client.post('/api/pages', { data: { title: 'x' } })).status).toBe(201);
      const guest = (await service.anonymous.post('/api/auth/guest')).body.access_token;
      const headers = { Authorization: `Bearer ${guest}` };
      expect((await service.anonymous.post('/api/pages', { data: { title: 'x' } }, headers)).status).toBe(403);
      const operations = [{ op: 'create', collection: 'pages', data: { title: 'y' } }];
      expect((await client.post('/api/batch', { operations })).status).toBe(200);
    });

    test('a rule compares the body with the query', async () => {
      const { client } = await service.user();
      const statuses = [];
      for (const query of ['?expected=x', '?expected=y', ''])
        statuses.push((await client.post(`/api/notes${query}`, { data: { title: 'x' } })).status);
      expect(statuses).toEqual([201, 403, 403]);
    });

    test('an explanation of the own request knows its facts', async () => {
      const { client } = await service.user('admin');
      const question = { action: 'list', collection: 'inside' };
      const { body } = await client.post('/api/_explain', question);
      expect(JSON.stringify(body)).toContain('@request.ip in');
      expect(JSON.stringify(body)).not.toContain('was not sent');
      expect((await client.get('/api/clocks')).status).toBe(200);
      expect((await client.post('/api/clocks', { data: { title: 'x' } })).status).toBe(403);
    });
  },
  { schema: SCHEMA },
);
