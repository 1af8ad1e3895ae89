/**
 * Random rules, for the compiler under test and for the oracle: about reading, of every collection and of some members, and about writes of
 * the listed collection.
 */
import type { Permit } from '../../../src/policy/access.ts';
import type { Action, Catalog, PolicyRequest } from '../../../src/policy/types.ts';
import type { ReadRules } from '../../oracle/hide.ts';
import type { Compiler } from '../policies/compiler.ts';
import { type Compiled, compileForm, Rejected } from '../policies/differential.ts';
import { PolicyMaker, type Setting } from '../policies/policies.ts';
import type { Random } from '../random.ts';

/** A union of policies; without policies it is empty. */
export type Rule = readonly Compiled[];
export interface RuleSet {
  readonly list: Rule;
  /** The rule of the listed collection. */
  readonly update: Rule;
  readonly remove: Rule;
  readonly records: ReadonlyMap<string, Rule>;
  /** Collection → member → its rule, for members that have one. */
  readonly members: ReadonlyMap<string, ReadonlyMap<string, Rule>>;
}
export interface RuleGrounds {
  readonly catalog: Catalog;
  /** Collection → its records. */
  readonly ids: ReadonlyMap<string, readonly string[]>;
  readonly random: Random;
  readonly compiler: Compiler;
}

export class RuleMaker {
  readonly #grounds: RuleGrounds;

  constructor(grounds: RuleGrounds) {
    this.#grounds = grounds;
  }

  /** `masked`: the members of a collection that may have a rule. */
  make(listed: string, masked: (collection: string) => readonly string[]): RuleSet {
    const { catalog, random } = this.#grounds;
    const names = [...catalog.collections.keys()];
    const list = this.#rule(listed);
    const records = new Map(names.map((name) => [name, this.#rule(name)] as const));
    const members = new Map(
      names.map((name) => {
        // A hidden reference is hidden from orders, related records and the way back.
        const { relations } = catalog.collections.get(name)!;
        const some = masked(name).filter((member) => random.chance(relations.has(member) ? 0.6 : 0.25));
        return [name, new Map(some.map((member) => [member, this.#rule(name)]))] as const;
      }),
    );
    return { list, records, members, update: this.#rule(listed, 'update'), remove: this.#rule(listed, 'delete') };
  }

  maker(collection: string): PolicyMaker {
    const { random, ids } = this.#grounds;
    return new PolicyMaker(this.#setting(collection), { random, ids });
  }

  /** Open, closed, or one or two policies. */
  #rule(collection: string, action: Action = 'read'): Rule {
    const { random } = this.#grounds;
    const roll = random.next();
    if (roll < 0.25) return [this.#open(collection)];
    if (roll < 0.3) return [];
    return Array.from({ length: 1 + random.below(2) }, () => this.#random(collection, action));
  }

  #random(collection: string, action: Action): Compiled {
    const { random, compiler, ids } = this.#grounds;
    const setting = { ...this.#setting(collection), action };
    const maker = new PolicyMaker(setting, { random, ids });
    const making = { setting, compiler, random };
    for (;;) {
      try {
        return compileForm(random.chance(0.5) ? 'it' : 'it or not it', maker.make(), making);
      } catch (error) {
        if (!(error instanceof Rejected)) throw error;
      }
    }
  }

  #open(collection: string): Compiled {
    const { random, compiler } = this.#grounds;
    const making = { setting: this.#setting(collection), compiler, random };
    return compileForm('it', compiler.parse('true').expr!, making);
  }

  #setting(collection: string): Setting {
    return { catalog: this.#grounds.catalog, collection, action: 'read' };
  }
}

type Decide = (given: { rules: readonly Compiled['generated'][]; request: PolicyRequest }) => Permit;

export const permitOf = (rule: Rule, request: PolicyRequest, decide: Decide): Permit =>
  decide({ rules: rule.map(({ generated }) => generated), request });

/** As the oracle takes them. */
export const meantBy = ({ records, members }: RuleSet): ReadRules => ({
  records: checkedIn(records),
  members: new Map([...members].map(([name, rules]) => [name, checkedIn(rules)])),
});

const checkedIn = (rules: ReadonlyMap<string, Rule>) =>
  new Map([...rules].map(([name, rule]) => [name, rule.map(({ meant }) => meant)] as const));

/** For a report. */
export function linesOf({ list, records, members, update, remove }: RuleSet): readonly string[] {
  const textsOf = (rule: Rule) => rule.map((each) => each.text).join('  |  ') || 'nobody';
  return [
    `  list        ${textsOf(list)}`,
    `  update      ${textsOf(update)}`,
    `  delete      ${textsOf(remove)}`,
    ...[...records].map(([name, rule]) => `  read        ${name}: ${textsOf(rule)}`),
    ...[...members].flatMap(([name, masks]) =>
      [...masks].map(([member, rule]) => `  mask        ${name}.${member}: ${textsOf(rule)}`),
    ),
  ];
}
