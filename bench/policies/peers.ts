/** Libraries that answer the question of P3, each by its own language. */
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { createMongoAbility, subject } from '@casl/ability';
import { preparsePolicySet, statefulIsAuthorized } from '@cedar-policy/cedar-wasm/nodejs';
import { Environment } from '@marcbachmann/cel-js';
import { compilePolicy } from '../../src/policy/compile.ts';
import { NO_RELATED, type PolicyRequest } from '../../src/policy/types.ts';
import { COLLECTION, catalog, P3 } from '../support/documents.ts';
import { contextsOf, type Decide, type Decision, P3_CEL } from './decisions.ts';

/** Binds the decisions to the policy. */
type ReadyPolicy = (decisions: readonly Decision[]) => Decide;

export interface PolicyPeer {
  readonly name: string;
  /** Each number makes a policy of another text, of the same meaning. */
  compile(number: number): ReadyPolicy;
}

export const bylaw: PolicyPeer = {
  name: 'bylaw',
  compile(number) {
    const text = `${P3} or @record.score = ${number} and @record.score != ${number}`;
    const policy = compilePolicy(number === 0 ? P3 : text, { catalog, collection: COLLECTION, action: 'read' });
    return (decisions) => {
      const requests = new Set(decisions.map(({ request }) => request));
      const known = new Map([...requests].map((request) => [request, policy.specialise(request)]));
      const all = decisions.map(({ row, request }) => ({ row, residual: known.get(request)! }));
      return (i) => {
        const { row, residual } = all[i]!;
        return residual.test(row, NO_RELATED);
      };
    };
  },
};

/** Its rules are data, made for one caller. */
export const casl: PolicyPeer = {
  name: '@casl/ability',
  compile(number) {
    const abilityOf = ({ auth, now }: PolicyRequest) =>
      createMongoAbility(
        (auth!.roles as string[]).includes('admin')
          ? [{ action: 'read', subject: 'documents' }]
          : [
              {
                action: 'read',
                subject: 'documents',
                conditions: {
                  status: { $in: ['published', 'review'] },
                  due_at: { $lt: now, $ne: null },
                  owner: auth!.id,
                  ...(number > 0 && { score: { $ne: number } }),
                },
              },
            ],
      );
    return (decisions) => {
      const requests = new Set(decisions.map(({ request }) => request));
      const known = new Map([...requests].map((request) => [request, abilityOf(request)]));
      const bound = decisions.map(({ row, request }) => ({
        row: subject('documents', { ...row }),
        ability: known.get(request)!,
      }));
      return (i) => {
        const { row, ability } = bound[i]!;
        return ability.can('read', row);
      };
    };
  },
};

export const cel: PolicyPeer = {
  name: '@marcbachmann/cel-js',
  compile(number) {
    const environment = new Environment({ unlistedVariablesAreDyn: true });
    const program = environment.parse(number === 0 ? P3_CEL : `(${P3_CEL}) || ${number} < 0`);
    return (decisions) => {
      const contexts = contextsOf(decisions);
      return (i) => program(contexts[i]!) === true;
    };
  },
};

const P3_CEDAR = `permit (principal, action == Action::"read", resource) when {
  principal.roles.contains("admin") ||
  (["published", "review"].contains(resource.status) && resource has due_at && resource.due_at < context.now &&
    resource has owner && resource.owner == principal)
};`;

/** The policy is parsed once; a decision hands over its entities. Instants are numbers: Cedar knows no microseconds. */
export const cedar: PolicyPeer = {
  name: '@cedar-policy/cedar-wasm',
  compile(number) {
    const id = `p${number}`;
    const staticPolicies = number === 0 ? P3_CEDAR : `@number("${number}")\n${P3_CEDAR}`;
    const parsed = preparsePolicySet(id, { staticPolicies });
    if (parsed.type === 'failure') throw new Error(JSON.stringify(parsed.errors));
    return (decisions) => {
      const calls = decisions.map((decision) => ({ ...cedarCall(decision), preparsedPolicySetId: id }));
      return (i) => {
        const answer = statefulIsAuthorized(calls[i]!);
        if (answer.type === 'failure') throw new Error(JSON.stringify(answer.errors));
        return answer.response.decision === 'allow';
      };
    };
  },
};

function cedarCall({ row, request: { auth, now } }: Decision) {
  const principal = { type: 'User', id: String(auth!.id) };
  const resource = { type: 'Document', id: String(row.id) };
  const attrs = {
    status: String(row.status),
    ...(row.due_at !== null && { due_at: Date.parse(String(row.due_at)) }),
    ...(row.owner !== null && { owner: { __entity: { type: 'User', id: String(row.owner) } } }),
  };
  return {
    principal,
    action: { type: 'Action', id: 'read' },
    resource,
    context: { now: Date.parse(now) },
    entities: [
      { uid: principal, attrs: { roles: auth!.roles as string[] }, parents: [] },
      { uid: resource, attrs, parents: [] },
    ],
  };
}

/** What it exports to `import` is not what its types say. */
const { loadPolicySync } = createRequire(import.meta.url)(
  '@open-policy-agent/opa-wasm',
) as typeof import('@open-policy-agent/opa-wasm');

/** Made by the program `opa` of p3.rego: a policy made ready is an instance of it, whose compilation is not counted. */
const P3_OPA = join(import.meta.dirname, 'opa/p3.wasm');

export const opa: PolicyPeer = {
  name: '@open-policy-agent/opa-wasm',
  compile() {
    const policy = loadPolicySync(readFileSync(P3_OPA));
    return (decisions) => {
      const inputs = contextsOf(decisions);
      return (i) => policy.evaluate(inputs[i]!)[0].result === true;
    };
  },
};

export const PEERS: readonly PolicyPeer[] = [bylaw, casl, cel, cedar, opa];
