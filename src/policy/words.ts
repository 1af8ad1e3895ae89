/**
 * The words of the language other than comparisons, and what a policy can name. Completions and the
 * language reference are made from it.
 */
import type { CHANGE_CALLS, QUANTIFIERS } from '../../grammar/tokens.ts';
import { OPERATORS } from './operators.ts';

export interface LanguageWord {
  /** The way in which authors write it. */
  readonly form: string;
  readonly doc: string;
  /** The only action whose rules may use it. */
  readonly action?: 'update';
}

export type Connective = 'is null' | 'is not null' | 'not' | 'and' | 'or';
export type FunctionName = (typeof QUANTIFIERS)[number] | (typeof CHANGE_CALLS)[number] | 'count' | 'ancestors';

export const CONNECTIVES: Readonly<Record<Connective, LanguageWord>> = {
  'is null': {
    form: '… is null',
    doc: 'a value or a to-one relation is absent',
  },
  'is not null': {
    form: '… is not null',
    doc: 'a value or a to-one relation is there',
  },
  not: {
    form: 'not …',
    doc: 'the contrary',
  },
  and: {
    form: '… and …',
    doc: 'all are true',
  },
  or: {
    form: '… or …',
    doc: 'one is true',
  },
};

export const FUNCTIONS: Readonly<Record<FunctionName, LanguageWord>> = {
  any: {
    form: 'any(path as x, …)',
    doc: 'true for a record of a to-many relation',
  },
  all: {
    form: 'all(path as x, …)',
    doc: 'true for every record of a to-many relation',
  },
  none: {
    form: 'none(path as x, …)',
    doc: 'true for no record of a to-many relation: `not any`',
  },
  count: {
    form: 'count(path)`, `count(path as x, …)',
    doc: 'an int: how many records of a to-many relation there are, or meet the condition definitely',
  },
  ancestors: {
    form: 'ancestors(path by belongs_to)',
    doc: 'the record at the path and those above it, for a quantifier or `count`: at most 32, reached by a belongs_to that leads back to its own collection',
  },
  changed: {
    form: 'changed(@record.f, …)',
    doc: 'at least one of these fields and relations differs between the stored and the resulting record',
    action: 'update',
  },
  changed_only: {
    form: 'changed_only(@record.f, …)',
    doc: 'nothing but these fields and relations differs (`updated_at` aside)',
    action: 'update',
  },
};

export interface NameDoc {
  /** How names of the kind are written. */
  readonly forms: readonly string[];
  readonly doc: string;
}

/** The documentation of each root of a path. */
export const ROOT_DOCS: Readonly<Record<string, NameDoc>> = {
  '@record': {
    forms: ['@record.title', '@record.team.name'],
    doc: 'the stored record, over at most six names; on create, the record as it would be stored',
  },
  '@next': {
    forms: ['@next.title'],
    doc: 'update: the record as it would be afterwards; on create the same as `@record`',
  },
  '@request.auth': {
    forms: ['@request.auth.id'],
    doc: 'the caller: `id`, `email`, `email_verified`, `roles`, `second_factor`, `signed_in_at`, `guest`, `former_guest`, and members of `users`',
  },
  '@request.query': {
    forms: ['@request.query.tag'],
    doc: 'a query parameter: text that is read as the type of what it is compared with',
  },
  '@request.data': {
    forms: ['@request.data.title'],
    doc: 'create and update: what the body holds, before defaults',
  },
  '@request.ip': {
    forms: ['@request.ip'],
    doc: 'the address of the caller, compared with literal addresses and networks: `@request.ip in ["10.0.0.0/8"]`',
  },
  '@request.method': {
    forms: ['@request.method'],
    doc: 'the HTTP method of the request in capitals, also where it is a batch, a query or a question about capabilities',
  },
  '@request.origin': {
    forms: ['@request.origin'],
    doc: 'the `Origin` header: the page that sent the request, absent where there is none; programs other than browsers send what they like',
  },
  '@request.kind': {
    forms: ['@request.kind'],
    doc: 'the kind of the caller: `user`, `key` or `guest`',
  },
  '@now.hour': {
    forms: ['@now.hour'],
    doc: 'the hour of the request, 0 to 23, in the `timezone` of the schema',
  },
  '@now.weekday': {
    forms: ['@now.weekday'],
    doc: 'the weekday of the request, 1 (Monday) to 7 (Sunday), in the `timezone` of the schema',
  },
  '@now': {
    forms: ['@now', '@now - 24h', '@now + 7d'],
    doc: 'the instant of the request, the same in every part of it; units are s, m, h, d, w',
  },
  '@today': {
    forms: ['@today', '@today + 7d'],
    doc: 'the day of the request in the `timezone` of the schema, for date fields; units are d, w',
  },
};

/** The variable that a quantifier or `count` binds. */
export const VARIABLE: NameDoc = {
  forms: ['m', 'm.user'],
  doc: 'the record that `any`, `all`, `none` or `count` has bound, and its fields',
};

const DOCS: ReadonlyMap<string, { readonly doc: string }> = new Map(
  [OPERATORS, CONNECTIVES, FUNCTIONS, ROOT_DOCS].flatMap((table) => Object.entries(table)),
);

/** The meaning of an operator, a word, a function or a root. */
export function docOf(text: string): { readonly doc?: string } {
  const doc = DOCS.get(text)?.doc;
  return doc === undefined ? {} : { doc };
}
