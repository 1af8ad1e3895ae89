// @module-tag long
/** The solver's verdicts on pairs with a known meaning, and faults in the solver that these pairs must show. */
import { afterAll, describe, expect, it } from 'vitest';
import * as search from '../../../../src/policy/analyse/solve/search.ts';
import * as solve from '../../../../src/policy/analyse/solve/solve.ts';
import { compilePolicy } from '../../../../src/policy/compile.ts';
import type { Fault } from '../../../fuzz/faults/fault.ts';
import { ProgramCopy } from '../../../fuzz/faults/program-copy.ts';
import { loaderOf } from '../../../fuzz/policies/compiler.ts';
import { noSolverCounts, runSolver } from '../../../fuzz/solver/run.ts';
import { SOLVE_CASES, type SolveCase, schema, verdictOf } from './solve-cases.ts';

const SOLVER = { ...solve, ...search };

describe('the solver', () => {
  it.each(SOLVE_CASES)('compares %j with %j: %s', (...pair) => {
    expect(verdictOf(SOLVER, pair as unknown as SolveCase)).toBe(pair[2]);
  });

  it('finds the reverse of each difference', () => {
    const reversed = { wider: 'narrower', narrower: 'wider', both: 'both', same: 'same', unknown: 'unknown' } as const;
    const wrong = SOLVE_CASES.filter(
      ([old, changed, verdict, action = 'read']) =>
        verdictOf(SOLVER, [changed, old, verdict, action]) !== reversed[verdict],
    );
    expect(wrong).toEqual([]);
  });

  it('shows a difference as one world of rows', () => {
    const place = { catalog: schema, collection: 'documents', action: 'read' } as const;
    const rules = (text: string) => [compilePolicy(text, place)];
    const found = solve.findWorld(place, {
      allowedBy: rules('any(@record.team.memberships as m, m.user = @request.auth.id)'),
      deniedBy: rules('any(@record.team.memberships as m, m.user = @request.auth.id and m.role = "owner")'),
    });
    expect(found.kind).toBe('world');
    if (found.kind !== 'world') return;
    const { rows, record, request } = found.world;
    expect(rows.get('documents')).toEqual([record]);
    expect(rows.get('memberships')).toMatchObject([
      { team: record!.team, user: request.auth!.id, role: expect.stringMatching(/editor|reader/) },
    ]);
  });

  it('gives up, without a verdict, at once if nothing is left of the budget', () => {
    const place = { catalog: schema, collection: 'documents', action: 'read' } as const;
    const pair = [[compilePolicy('@record.score > 1', place)], [compilePolicy('@record.score > 2', place)]] as const;
    expect(solve.compareRules(place, pair, { budget: new search.Budget(0) })).toEqual({ verdict: 'unknown' });
  });

  it('decides random pairs as small worlds do', () => {
    const counts = noSolverCounts();
    const found = runSolver({ seed: 7, counts, isOver: () => counts.pairs >= 72, questions: 24, budget: 20 });
    expect(found).toBeUndefined();
    expect(counts.unknown).toBeLessThan(counts.pairs * 0.15);
    expect(counts.differing).toBeGreaterThan(20);
  });
});

const ASKED = 'src/policy/analyse/solve/asked-request.ts';
const COMPARING = 'src/policy/analyse/solve/comparing.ts';
const FAULTS: readonly Fault[] = [
  {
    name: 'null is forgotten',
    file: COMPARING,
    find: /return someOf\(\[\.\.\.absent, \.\.\.this\.#blank\(asking, right\), test\]\);/,
    put: 'return test;',
  },
  { name: 'two roles are one', file: ASKED, find: /`role \$\{name\}`/, put: "'role'" },
  { name: 'roles include no others', file: ASKED, find: /\[name, \.\.\.follows\]/, put: '[name]' },
];

describe('a fault in the solver', () => {
  const copies: ProgramCopy[] = [];
  afterAll(() => {
    for (const copy of copies) copy.remove();
  });

  it.each(FAULTS)('changes a verdict: $name', async (fault) => {
    const copy = new ProgramCopy();
    copies.push(copy);
    expect(copy.change(fault)).toBe(true);
    const load = loaderOf(copy.root);
    const faulty = {
      ...(await load<typeof solve>('src/policy/analyse/solve/solve.ts')),
      ...(await load<typeof search>('src/policy/analyse/solve/search.ts')),
    };
    const changed = SOLVE_CASES.filter((pair) => verdictOf(faulty, pair) !== pair[2]);
    expect(changed.length).toBeGreaterThan(0);
  });
});
