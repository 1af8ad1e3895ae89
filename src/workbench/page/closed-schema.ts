/** A schema whose rules decide without generated code, which pages forbid. */
import { compileChecked } from '../../policy/compile.ts';
import { ACTIONS, type Action, type Catalog, type Policy } from '../../policy/types.ts';
import { deletedCatalogOf } from '../../schema/model/kept/soft-delete.ts';
import type { Collection, Schema } from '../../schema/model/model.ts';

export function closedSchema(schema: Schema): Schema {
  const collections = [...schema.collections].map(
    ([name, collection]) => [name, new SchemaClosing(schema, collection).collection] as const,
  );
  return { ...schema, collections: new Map(collections) };
}

class SchemaClosing {
  readonly #schema: Schema;
  readonly #collection: Collection;
  /** The rules of a `view` are those of `list`: one policy stays one. */
  readonly #closed = new Map<Policy, Policy>();

  constructor(schema: Schema, collection: Collection) {
    this.#schema = schema;
    this.#collection = collection;
  }

  get collection(): Collection {
    const { access, memberAccess, checks, softDelete } = this.#collection;
    const members = [...memberAccess].map(([member, rules]) => {
      const closed = (['read', 'create', 'update'] as const).flatMap((action) =>
        rules[action] === undefined ? [] : [[action, this.#all(rules[action], action)]],
      );
      return [member, { ...rules, ...Object.fromEntries(closed) }] as const;
    });
    return {
      ...this.#collection,
      access: {
        ...access,
        ...Object.fromEntries(ACTIONS.map((action) => [action, this.#all(access[action], action)])),
      },
      memberAccess: new Map(members),
      checks: checks.map((check) => {
        const { create, update } = check.violated;
        return { ...check, violated: { create: this.#all(create, 'create'), update: this.#all(update, 'update') } };
      }),
      ...(softDelete && { softDelete: { ...softDelete, restore: this.#restore(softDelete.restore) } }),
    };
  }

  #all(rules: readonly Policy[], action: Action): readonly Policy[] {
    return rules.map((rule) => this.#one(rule, this.#schema, action));
  }

  #restore(rules: readonly Policy[]): readonly Policy[] {
    const catalog = deletedCatalogOf(this.#schema, this.#collection.name);
    return rules.map((rule) => this.#one(rule, catalog, 'list'));
  }

  #one(rule: Policy, catalog: Catalog, action: Action): Policy {
    const known = this.#closed.get(rule);
    if (known !== undefined) return known;
    const closed = { ...rule, ...compileChecked({ ...rule, catalog, action }, { codegen: false }) };
    this.#closed.set(rule, closed);
    return closed;
  }
}
