/** Ways to sign in on a cluster, whose planner knows fewer statements than PostgreSQL. */
import { describe, expect, test } from 'vitest';
import { newEnrolled, unspentCode } from '../auth/authenticator.ts';
import { codeOf, newEmail, newPerson, PASSWORD, refresh } from '../auth/people.ts';
import { clusterUrl, withService } from '../support/service.ts';

const SCHEMA = `
roles: [member]
register: { roles: [member] }
guests: true
mail: { otp: true }
collections:
  notes: { distribute: { by: team }, fields: { text: string }, relations: { team: { kind: belongs_to, collection: teams, required: true } } }
  teams: { distribute: reference, fields: { name: string } }
`;
const WRONG = '401 invalid_credentials';

describe.skipIf(clusterUrl === '')('sign-ins (distributed)', () => {
  withService(
    'cluster',
    (service) => {
      const post = (path: string, body: object) => service.anonymous.post(`/api/auth/${path}`, body);

      test.each(['totp', 'recovery'])('the second step is a code (%s)', async (method) => {
        const person = await newEnrolled(service.anonymous);
        const { challenge, methods } = (await post('login', { email: person.email, password: PASSWORD })).body;
        expect(methods).toEqual(['totp', 'recovery']);
        const code = method === 'totp' ? await unspentCode(service.app.db, person) : person.recoveryCodes[0]!;
        const answer = (given: string) => post('challenge', { challenge, method, code: given });
        expect(codeOf(await answer('zzzzzzzzzz'))).toBe(WRONG);
        const { body } = await answer(code);
        expect(body.user.email).toBe(person.email);
        expect(codeOf(await answer(code))).toBe(WRONG);
        expect((await refresh(service.anonymous, body.refresh_token)).status).toBe(200);
      });

      test('a guest registers, and a code by mail is the first proof of the address', async () => {
        const guest = (await service.anonymous.post('/api/auth/guest')).body.access_token;
        const email = newEmail();
        const visitor = service.anonymous.with({ Authorization: `Bearer ${guest}` });
        expect((await visitor.post('/api/auth/register', { email, password: PASSWORD })).status).toBe(201);
        const mail = { id: '', kind: 'login', address: email, detail: {}, attempt: 1, createdAt: '' } as const;
        const secrets = await service.app.auth.loginCodes.issue({ ...mail, language: undefined });
        expect((await post('otp/confirm', { email, code: secrets!.code })).body.user.email_verified).toBe(true);
        expect(codeOf(await post('login', { email, password: PASSWORD }))).toBe(WRONG);
        expect((await newPerson(service.anonymous)).access).toBeDefined();
      });
    },
    { schema: SCHEMA },
  );
});
