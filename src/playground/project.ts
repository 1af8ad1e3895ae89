/** The texts of the page as a project: the schema, and policy tests that hold the decisions of the page. */
import { parse, stringify } from 'yaml';
import type { Schema } from '../schema/model/model.ts';
import { outcomeOf } from './decide.ts';
import type { PageState } from './page-state.ts';
import type { PlaygroundWorld } from './read-world.ts';

interface Project {
  readonly schema: Schema;
  readonly world: PlaygroundWorld;
  readonly state: PageState;
}

export function projectOf({ schema, world, state }: Project): Readonly<Record<string, string>> {
  const { callers, rows } = (parse(state.world) ?? {}) as { callers?: object; rows?: object };
  const tests = [...world.rows].flatMap(([collection, named]) =>
    // Callers are users without a row of their own in a file of tests.
    collection === 'users' ? [] : named.map(({ name, row }) => ({ [collection]: name, ...decisions(collection, row) })),
  );
  const file = { ...(callers && { as: callers }), ...(rows && { rows }), tests };
  return { 'bylaw.yaml': state.schema, 'bylaw.policy.yaml': stringify(file) };

  function decisions(collection: string, row: PlaygroundWorld['callers'][number]['row']) {
    return Object.fromEntries(
      world.callers.map((caller) => [
        caller.name,
        Object.fromEntries(
          (['list', 'read', 'update', 'delete'] as const).map((action) => {
            const outcome = outcomeOf({ schema, world, collection, action }, caller.row, row);
            return [action, outcome === 'allowed' ? 'yes' : 'no'];
          }),
        ),
      ]),
    );
  }
}
