/** The file of the served schema, for administrators: its text, and the place of each condition. Not a route. */
import { memoizedBy } from '../../memoized.ts';
import type { Action } from '../../policy/types.ts';
import { memberRulePlace, rulePlace } from '../../schema/advice/read-access.ts';
import type { DocumentPath } from '../../schema/file/issue.ts';
import type { SchemaFile } from '../../schema/file/shape.ts';
import { SourceText } from '../../schema/file/source.ts';
import type { Schema } from '../../schema/model/model.ts';

interface ServedPlace {
  readonly offset: number;
  readonly length: number;
}
interface RuleInText {
  readonly collection: string;
  readonly action: Action;
  /** Given for the rule of a field or belongs_to. */
  readonly member?: string;
  readonly index: number;
}

class ServedText {
  /** Undefined: the file holds a secret. */
  readonly text: string | undefined;
  readonly #source: SourceText;
  readonly #shape: SchemaFile;

  constructor({ text, file }: Schema) {
    this.#source = new SourceText(text, file);
    this.#shape = (this.#source.value() ?? {}) as SchemaFile;
    const providers = Object.values(this.#shape.oauth ?? {});
    this.text = providers.some(({ client_secret }) => client_secret !== undefined) ? undefined : text;
  }

  /** The scalar of the rule's condition, its quotes included. Undefined: the rule is built in, or has roles only. */
  conditionOf({ collection, action, member, index }: RuleInText): ServedPlace | undefined {
    const shapes = this.#shape.collections ?? {};
    if (this.text === undefined || (member === undefined && shapes[collection]?.access === undefined)) return undefined;
    const key = action === 'read' ? 'read' : 'write';
    const path: DocumentPath =
      member === undefined
        ? rulePlace({ collection, action, index }, { shapes })
        : memberRulePlace({ collection, member, key, index }, { shapes });
    const scalar = this.#source.scalarAt(this.#source.conditionPath(path));
    return typeof scalar?.value === 'string'
      ? { offset: scalar.start, length: this.text.slice(scalar.start, scalar.end).trimEnd().length }
      : undefined;
  }
}

export const servedTextOf = memoizedBy((schema: Schema) => new ServedText(schema));
