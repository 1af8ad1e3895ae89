/**
 * Checks the rules of collections that are stored by tenant: every request must provably reach one
 * tenant, so that one machine answers it. For `lists: filtered`, the request names the tenant.
 */
import { type Pin, provenPins, requestedBy, sharedPins } from '../../policy/analyse/routing.ts';
import { ACTIONS, type Action, type Policy } from '../../policy/types.ts';
import type { DocumentPath } from '../file/issue.ts';
import type { Collection } from '../model/model.ts';
import { pathOfCheck } from '../rules/checks.ts';
import { placedPolicies } from './privilege-escalation.ts';
import { type AdviceContext, rulePlace } from './read-access.ts';

export function checkRouting(collections: ReadonlyMap<string, Collection>, context: AdviceContext): void {
  for (const collection of collections.values()) {
    checkRequested(collection, collections, context);
    const { tenantLayout } = collection;
    if (tenantLayout?.kind !== 'by') continue;
    const check = new RoutingCheck(collection, tenantLayout.by, collections.get('users')!, context);
    check.checkDefault();
    if (tenantLayout.lists === 'routed') {
      for (const action of ACTIONS) check.checkAction(action);
      check.checkRestore();
    }
  }
}

/**
 * Reports rules that find a record by its id alone: it could be on any machine, even if the machine
 * of the rule's own record is known.
 */
function checkRequested(
  collection: Collection,
  collections: ReadonlyMap<string, Collection>,
  context: AdviceContext,
): void {
  const checks = collection.checks.flatMap((check) => {
    const path = pathOfCheck(collection.name, check);
    return check.violated.update.map((policy) => ({ policy, path }));
  });
  for (const { policy, path } of [...placedPolicies(collection, context), ...checks]) {
    const found = requestedBy(policy.checked).find((name) => collections.get(name)?.tenantLayout?.kind === 'by');
    if (found === undefined) continue;
    const message =
      `this rule reads a record of \`${found}\` whose id is in the request, and its tenant is not known; ` +
      'go through a relation of `@record` or `@next`';
    context.source.report({ code: 'not_routed', message, path: context.source.conditionPath(path) });
  }
}

interface ProvenRule {
  readonly rule: Policy;
  readonly path: DocumentPath;
  readonly pins: readonly Pin[];
}

class RoutingCheck {
  readonly #collection: Collection;
  readonly #by: string;
  readonly #users: Collection;
  readonly #context: AdviceContext;

  /** @param users the callers, who may have a tenant */
  constructor(collection: Collection, by: string, users: Collection, context: AdviceContext) {
    this.#collection = collection;
    this.#by = by;
    this.#users = users;
    this.#context = context;
  }

  /** A create must name a tenant, or get it by default. */
  checkDefault(): void {
    const { name, relations, access, memberAccess } = this.#collection;
    const relation = relations.get(this.#by);
    const rules = memberAccess.get(this.#by)?.create;
    const isClosed = rules?.every(isConstantFalse) === true;
    if (relation?.kind !== 'belongs_to' || relation.default !== undefined || !isClosed) return;
    if (access.create.length === 0) return;
    const message =
      `no one may set \`${this.#by}\`, so no record can be created; ` +
      `add a default such as \`${this.#ownTenant() ?? '@request.auth.team'}\`, or remove the rule`;
    const path = ['collections', name, 'relations', this.#by, 'access', 'write'];
    this.#context.source.report({ code: 'default_missing', message, path });
  }

  checkAction(action: Action): void {
    const { name, access } = this.#collection;
    // A `view` is one list of rules for both.
    if (action === 'read' && access.read === access.list) return;
    this.#checkRules(access[action], (index) => rulePlace({ collection: name, action, index }, this.#context));
  }

  /** Deleted records are found as records are. */
  checkRestore(): void {
    const { name, softDelete } = this.#collection;
    const place = (index: number): DocumentPath =>
      rulePlace({ collection: name, action: 'restore', index }, this.#context);
    this.#checkRules(softDelete?.restore ?? [], place);
  }

  #checkRules(all: readonly Policy[], place: (index: number) => DocumentPath): void {
    const rules = all.flatMap((rule, index): readonly ProvenRule[] =>
      isConstantFalse(rule) ? [] : [{ rule, path: place(index), pins: provenPins(rule.checked, this.#by) }],
    );
    const open = rules.filter(({ pins }) => pins.length === 0);
    for (const rule of open) this.#reportOpen(rule);
    if (open.length === 0) this.#checkTogether(rules);
  }

  /** A request is one statement with all rules of the action, so they must agree on the tenant. */
  #checkTogether(rules: readonly ProvenRule[]): void {
    const all = rules.map(({ pins }) => pins);
    const other = rules.find((_, i) => sharedPins(all.slice(0, i + 1)).length === 0);
    if (other === undefined) return;
    const [here, there] = [other.pins, all[0]!].map(([pin]) => pinText(pin!));
    const message =
      `this rule is for the \`${this.#by}\` that is \`${here}\`, and the one before it for \`${there}\`; ` +
      `let all rules of the action take one of them, ${this.#alternative()}`;
    const { source } = this.#context;
    source.report({ code: 'not_routed', message, path: source.conditionPath(other.path) });
  }

  #reportOpen({ rule, path }: ProvenRule): void {
    const { source } = this.#context;
    const tenant = this.#ownTenant();
    const pin = `@record.${this.#by} = ${tenant ?? `@request.query.${this.#by}`}`;
    const { when } = rule.parts;
    const advice = when === undefined ? `add \`when: '${pin}'\`` : `begin it with \`${pin} and\``;
    const message = `records of any \`${this.#by}\` can meet this rule; ${advice}, ${this.#alternative()}`;
    const at = source.conditionPath(path);
    if (when === undefined) source.report({ code: 'not_routed', message, path: at });
    else {
      const span = { start: 0, end: when.length };
      const fix = tenant === undefined ? undefined : { span, replacement: `${pin} and (${when.trim()})` };
      source.reportWithin({ code: 'not_routed', message, path: at }, span, fix);
    }
  }

  #alternative(): string {
    return `or say \`lists: filtered\` in \`distribute\`, which makes the filter \`${this.#by}\` required`;
  }

  /** The path to the caller's own tenant. */
  #ownTenant(): string | undefined {
    const tenants = this.#collection.relations.get(this.#by)?.collection;
    if (tenants === 'users') return '@request.auth.id';
    const own = [...this.#users.relations.values()].find(
      ({ kind, collection }) => kind === 'belongs_to' && collection === tenants,
    );
    return own && `@request.auth.${own.name}`;
  }
}

const isConstantFalse = ({ checked }: Policy): boolean => checked.kind === 'const' && !checked.value;

const pinText = (pin: Pin): string =>
  pin.kind === 'literal' ? JSON.stringify(pin.value) : `@request.${pin.source}.${pin.name}`;
