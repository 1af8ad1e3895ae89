/** The 409 of a delete names what still references the record, as far as the caller may read it. */
import { expect, test } from 'vitest';
import { describeRoutes } from '../../support/service.ts';

const SCHEMA = `
register: { roles: [member] }
roles: { admin: {}, member: {} }
collections:
  orgs:
    fields: { name: string }
    access: { view: true, create: true, delete: true }
  jobs:
    relations: { org: { kind: belongs_to, collection: orgs, required: true, on_delete: cascade } }
    access: { view: true, create: true, delete: true }
  applications:
    fields: { secret: { type: bool, required: true, default: false } }
    relations:
      job: { kind: belongs_to, collection: jobs, required: true }
      sender: { kind: belongs_to, collection: users, default: '@request.auth.id', on_delete: set_null }
    access:
      view: '@record.secret = false or @record.sender = @request.auth.id'
      create: true
`;

describeRoutes(
  'a delete that references block',
  (service) => {
    test('the error names the references of records that the caller may read', async () => {
      const [ann, bob] = [await service.user(), await service.user()];
      const make = async (collection: string, data: object): Promise<string> =>
        (await ann.client.post(`/api/${collection}`, { data })).body.data.id;
      const org = await make('orgs', {});
      const job = await make('jobs', { org });
      const hidden = await make('applications', { job, secret: true });
      const refusalOf = async ({ client }: typeof ann, path: string) => {
        const { status, body } = await client.delete(path);
        return [status, body.code, body.detail];
      };
      // The refusal names the reference, and not its record.
      const UNNAMED = [409, 'still_referenced', 'other records still reference this one'];
      expect(await refusalOf(bob, `/api/jobs/${job}`)).toEqual(UNNAMED);
      expect(await refusalOf(bob, `/api/orgs/${org}`)).toEqual(UNNAMED);
      const direct = 'records of `applications` still reference this one, by `job`';
      const further = 'records of `applications` still reference records of `jobs` that it would delete, by `job`';
      expect(await refusalOf(ann, `/api/jobs/${job}`)).toEqual([409, 'still_referenced', direct]);
      expect(await refusalOf(ann, `/api/orgs/${org}`)).toEqual([409, 'still_referenced', further]);
      expect((await ann.client.get(`/api/applications/${hidden}`)).status).toBe(200);
      await make('applications', { job });
      expect(await refusalOf(bob, `/api/orgs/${org}`)).toEqual([409, 'still_referenced', further]);
      // Another organisation has none.
      expect((await bob.client.delete(`/api/orgs/${await make('orgs', {})}`)).status).toBe(204);
    });
  },
  { schema: SCHEMA },
);
