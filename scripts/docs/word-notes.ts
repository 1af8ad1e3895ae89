/** The parts of the language reference that only its tables show: results for null, and examples. Pages do not load them. */
import type { CompareOp } from '../../grammar/syntax.ts';
import type { Connective, FunctionName } from '../../src/policy/words.ts';

export interface WordNotes {
  /** The result for null. */
  readonly nullMeaning: string;
  readonly examples: readonly string[];
}

const COMPARISON_OF_ABSENT = 'unknown when a side is absent, and so is its negation';
const OF_ABSENT_STEP = 'unknown when a step before the relation is absent';
const NEVER_UNKNOWN = 'true or false, never unknown; null to null is not a change';

export const OPERATOR_NOTES: Readonly<Record<CompareOp, WordNotes>> = {
  '=': {
    nullMeaning: COMPARISON_OF_ABSENT,
    examples: ['@record.owner = @request.auth.id', '@record.status = "published"'],
  },
  '!=': { nullMeaning: COMPARISON_OF_ABSENT, examples: ['@record.status != "draft"'] },
  '<': { nullMeaning: COMPARISON_OF_ABSENT, examples: ['@record.due_at < @now', '@record.score < 10'] },
  '<=': { nullMeaning: COMPARISON_OF_ABSENT, examples: ['@record.score <= 10'] },
  '>': { nullMeaning: COMPARISON_OF_ABSENT, examples: ['@record.created_at > @now - 24h'] },
  '>=': { nullMeaning: COMPARISON_OF_ABSENT, examples: ['@record.rating >= 4.5'] },
  in: {
    nullMeaning: 'unknown when the left side or the list is absent; false over an empty list',
    examples: ['@record.status in ["draft", "published"]', '@record.status in @request.query.status'],
  },
  'not in': {
    nullMeaning: 'unknown when the left side, the list or an element is absent; true over an empty list',
    examples: ['@record.status not in ["archived", "deleted"]'],
  },
  contains: {
    nullMeaning: 'unknown when a side is absent; false over an empty list',
    examples: [
      '@request.auth.roles contains "admin"',
      '@record.tags contains @request.query.tags_any',
      '@record.title contains "draft"',
      '@record.labels contains "urgent"',
    ],
  },
  'starts with': { nullMeaning: COMPARISON_OF_ABSENT, examples: ['@record.title starts with "RFC "'] },
  'ends with': {
    nullMeaning: COMPARISON_OF_ABSENT,
    examples: ['@request.auth.email_verified and @request.auth.email ends with "@example.com"'],
  },
  matches: {
    nullMeaning: COMPARISON_OF_ABSENT,
    examples: ['@record.title matches "müller"', '@record.title matches @request.query.q'],
  },
  within: { nullMeaning: COMPARISON_OF_ABSENT, examples: ['within(@record.at, 52.1, 4.3, 5km)'] },
};

export const CONNECTIVE_NOTES: Readonly<Record<Connective, WordNotes>> = {
  'is null': {
    nullMeaning: 'true or false, never unknown; true when any step of the path is absent',
    examples: ['@record.team is null'],
  },
  'is not null': {
    nullMeaning: 'true or false, never unknown; false when any step of the path is absent',
    examples: ['@record.due_at is not null'],
  },
  not: {
    nullMeaning: 'unknown stays unknown, so `not` opens nothing',
    examples: ['not (@record.pinned and @record.owner = @request.auth.id)'],
  },
  and: {
    nullMeaning: 'false if one is false, else unknown if one is unknown',
    examples: ['@record.pinned and @record.owner = @request.auth.id'],
  },
  or: {
    nullMeaning: 'true if one is true, else unknown if one is unknown',
    examples: ['@record.pinned or @record.owner = @request.auth.id'],
  },
};

export const FUNCTION_NOTES: Readonly<Record<FunctionName, WordNotes>> = {
  any: { nullMeaning: `false over none; ${OF_ABSENT_STEP}`, examples: ['any(@record.tags as t, t.label = "ok")'] },
  all: {
    nullMeaning: `**true over none**; ${OF_ABSENT_STEP}`,
    examples: ['any(@record.tags as t, true) and all(@record.tags as t, t.label = "ok")'],
  },
  none: { nullMeaning: `true over none; ${OF_ABSENT_STEP}`, examples: ['none(@record.tags as t, t.label = "secret")'] },
  count: {
    nullMeaning: 'null when a step before the relation is absent',
    examples: ['count(@record.tags) < 3', 'count(@record.tags as t, t.label starts with "x") in [1, 2]'],
  },
  ancestors: {
    nullMeaning: 'absent when the path is; what 32 do not settle where the chain goes on is unknown, and a count null',
    examples: ['any(ancestors(@record.team by parent) as t, t.name = "all")'],
  },
  changed: {
    nullMeaning: NEVER_UNKNOWN,
    examples: ['not changed(@record.owner) and @record.owner = @request.auth.id'],
  },
  changed_only: {
    nullMeaning: NEVER_UNKNOWN,
    examples: ['@record.owner = @request.auth.id and changed_only(@record.title, @record.tags)'],
  },
};
