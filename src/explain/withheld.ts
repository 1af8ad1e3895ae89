/**
 * An asker who lacks the role `admin` learns of a rule only what their own rules for reading show: a rule that may read more is
 * withheld. It depends on the caller and the schema alone, so that it says nothing about hidden rows either.
 */
import type { Checked, CheckedOperand, Member, Policy, ToManyPath, ToOneStep } from '../policy/types.ts';
import type { Readable, Visibility } from '../policy/visibility.ts';
import { memberName, operandsOf, partsOf } from '../policy/visit.ts';
import { visibilityOf } from '../records/access-context.ts';
import type { Relation, Schema } from '../schema/model/model.ts';
import { accessOf } from './asked-access.ts';
import type { Question } from './question.ts';

/** Returns true for rules that may read what the caller may not. */
export function withheldFor(question: Question): (rule: Pick<Policy, 'checked'>) => boolean {
  const sight = new OpenSight(visibilityOf(accessOf(question)), question.store.schema);
  return ({ checked }) => !sight.shows(checked);
}

const isReadByAll = (rule: Readable | undefined): boolean => rule === undefined || rule.verdict === 'allow';

class OpenSight {
  readonly #visibility: Visibility;
  readonly #schema: Schema;

  constructor(visibility: Visibility, schema: Schema) {
    this.#visibility = visibility;
    this.#schema = schema;
  }

  shows(checked: Checked): boolean {
    if (!operandsOf(checked).every((operand) => this.#showsOperand(operand))) return false;
    if (checked.kind === 'changed')
      return checked.members.every((member) => this.#showsMember(checked.collection, member));
    if (checked.kind === 'quantified') return this.#showsPath(checked.path) && this.shows(checked.condition);
    return checked.kind === 'compare' || partsOf(checked).every((part) => this.shows(part));
  }

  #showsOperand(operand: CheckedOperand): boolean {
    if (operand.kind === 'count') return this.#showsPath(operand.path) && this.shows(operand.condition);
    // The fields of users may be hidden from the users themselves.
    if (operand.kind === 'request') return operand.source !== 'auth' || this.#isShown('users', operand.name);
    if (operand.kind !== 'column') return true;
    const { collection, steps, column } = operand;
    if (!this.#showsSteps(steps)) return false;
    return (
      column.kind === 'id' ||
      column.kind === 'element' ||
      this.#isShown(lastCollection(collection, steps), memberName(column))
    );
  }

  #showsMember(collection: string, member: Member): boolean {
    if (!this.#isShown(collection, memberName(member))) return false;
    return member.kind === 'field' || this.#showsRelation(member.relation as Relation);
  }

  #showsPath({ steps, from, relation }: ToManyPath): boolean {
    const own = relation.kind === 'ancestors' ? relation.via.name : relation.name;
    if (!this.#showsSteps(steps) || !this.#isShown(from, own)) return false;
    if (relation.kind === 'elements') return true;
    return relation.kind === 'ancestors'
      ? isReadByAll(this.#visibility.records(relation.collection))
      : this.#showsRelation(relation as Relation);
  }

  #showsSteps(steps: readonly ToOneStep[]): boolean {
    return steps.every(
      ({ from, relation }) => this.#isShown(from, relation.name) && this.#showsRelation(relation as Relation),
    );
  }

  #showsRelation(relation: Pick<Relation, 'collection' | 'name'>): boolean {
    const via = 'via' in relation ? String(relation.via) : undefined;
    const { collection } = relation;
    return isReadByAll(this.#visibility.records(collection)) && (via === undefined || this.#isShown(collection, via));
  }

  #isShown(collection: string, member: string): boolean {
    const hasRules = this.#schema.collections.get(collection)?.memberAccess.has(member) === true;
    return !hasRules || isReadByAll(this.#visibility.member(collection, member));
  }
}

const lastCollection = (collection: string, steps: readonly ToOneStep[]): string =>
  steps.at(-1)?.relation.collection ?? collection;
