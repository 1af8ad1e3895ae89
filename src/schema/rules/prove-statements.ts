/** `prove:` → statements about the rules. Their decision is the workbench's; here they are only read. */
import { hintOf, nearest } from '../../../grammar/suggest.ts';
import type { Span } from '../../../grammar/syntax.ts';
import { examineErrors } from '../../policy/check/checker.ts';
import { GUEST } from '../../policy/check/guests.ts';
import { compileChecked } from '../../policy/compile.ts';
import {
  ACTIONS,
  type Catalog,
  type CatalogCollection,
  type Policy,
  RULED_ACTIONS,
  type RuledAction,
} from '../../policy/types.ts';
import type { DocumentPath } from '../file/issue.ts';
import type { SchemaFile, StatementShape } from '../file/shape.ts';
import type { SourceText } from '../file/source.ts';
import type { Bare } from '../model/collections.ts';
import { askedPlace } from '../model/kept/soft-delete.ts';
import type { Statement, Who } from '../model/model.ts';

interface StatementCatalog extends Catalog {
  readonly collections: ReadonlyMap<string, Bare>;
}
interface StatementsPlace {
  readonly source: SourceText;
  readonly catalog: StatementCatalog;
  /** Names whose declaration is wrong, which is reported there. */
  readonly broken: ReadonlySet<string>;
}

const ACTION_LIST = String.raw`\w+(?:\s*(?:,|\bor\b|\band\b)\s*\w+)*`;
const STATEMENT_PARTS = [
  /^\s*(?:(?<who>[^\s].*?)\s+)?(?<relative>who\s+)?can\s+/.source,
  `(?<actions>${ACTION_LIST})`,
  /\s+(?<target>\w+)(?:\.(?<member>\w+))?/.source,
  String.raw`(?:\s+where\s+(?<where>[\s\S]+)|\s+can\s+(?<implied>${ACTION_LIST})\s+(?:it|them))?\s*$`,
].join('');
const STATEMENT_FORM = new RegExp(STATEMENT_PARTS, 'd');
const EXPECTED_FORM =
  'expected `<who> can <action> <collection> [where <condition>]`, such as `guest can read posts where @record.draft`, ' +
  'or `who can <action> <collection> can <action> them`';
const WORDS_OF_CALLERS = ['guest', 'anyone', 'signed-in user'];

export const readStatements = ({ prove = [] }: SchemaFile, place: StatementsPlace): readonly Statement[] =>
  prove.flatMap((shape, i) => new StatementReader(place, ['prove', i]).read(shape) ?? []);

class StatementReader {
  readonly #place: StatementsPlace;
  readonly #of: DocumentPath;
  #path: DocumentPath;

  constructor(place: StatementsPlace, path: DocumentPath) {
    this.#place = place;
    this.#of = path;
    this.#path = path;
  }

  read({ never, always, why }: StatementShape): Statement | undefined {
    const { source } = this.#place;
    if (source.has([...this.#of, 'never']) === source.has([...this.#of, 'always'])) {
      const message = 'a statement needs `never` or `always`, and not both';
      return source.report({ code: 'statement_kind', message, path: this.#of });
    }
    const text = never ?? always;
    // A value of another type has an error of its own.
    if (text === undefined) return undefined;
    const kind = never === undefined ? 'always' : 'never';
    this.#path = [...this.#of, kind];
    const match = STATEMENT_FORM.exec(text);
    const isAboutWhoCan = match?.groups?.relative !== undefined || match?.groups?.who === 'who';
    if (match === null || isAboutWhoCan !== (match.groups?.implied !== undefined))
      return this.#report('statement_form', EXPECTED_FORM, { start: 0, end: text.length });
    return this.#fromParts(new StatementParts(match), { kind, text, why });
  }

  #fromParts(parts: StatementParts, given: Pick<Statement, 'kind' | 'text' | 'why'>): Statement | undefined {
    const { source, catalog, broken } = this.#place;
    const who = this.#who(parts);
    const actions = this.#actions(parts, 'actions', RULED_ACTIONS);
    const implied = parts.text('implied') === undefined ? undefined : this.#actions(parts, 'implied', ACTIONS);
    const name = parts.text('target') ?? '';
    const collection = catalog.collections.get(name);
    if (collection === undefined) {
      if (!broken.has(name)) this.#unknown('collection', [...catalog.collections.keys()], parts.span('target'), name);
      return undefined;
    }
    if (implied?.includes('create')) {
      const message = 'a record that exists is not created again; expected list, read, update or delete';
      return this.#report('statement_form', message, parts.span('implied'));
    }
    const notRestored = actions?.includes('restore') ? this.#whyNotRestored(collection, parts) : undefined;
    if (notRestored !== undefined) return this.#report('statement_form', notRestored, parts.span('actions'));
    const member = parts.text('member');
    if (member !== undefined && !this.#isMember(collection, member, parts.span('member'))) return undefined;
    if (member !== undefined && actions?.some((action) => action === 'delete' || action === 'restore'))
      return this.#report(
        'statement_form',
        'a field is not deleted or restored; expected list, read, create or update',
        parts.span('actions'),
      );
    const asked = actions?.map((action) => ({ action, where: this.#where(parts, name, action) }));
    if (who === undefined || asked === undefined || (parts.text('implied') !== undefined && implied === undefined))
      return undefined;
    if (parts.text('where') !== undefined && asked.some(({ where }) => where === undefined)) return undefined;
    const { line, column } = source.placeOf(this.#path);
    return { ...given, line, column, who, collection: name, member, asked, implied };
  }

  #who(parts: StatementParts): Who | undefined {
    const given = parts.text('who');
    const text = given === 'who' ? undefined : given;
    if (text === undefined || text === 'anyone') return { kind: 'anyone' };
    if (text === GUEST) return { kind: 'guest' };
    if (/^signed-in\s+users?$/.test(text)) return { kind: 'user' };
    const [, role = '', without] = /^(\S+)(?:\s+without\s+(\S+))?$/.exec(text) ?? [];
    const span = parts.span('who');
    if (role === '') return this.#report('statement_form', EXPECTED_FORM, span);
    const isKnown = this.#isRole(role, { start: span.start, end: span.start + role.length });
    if (without === undefined) return isKnown ? { kind: 'role', role } : undefined;
    const other = this.#isRole(without, { start: span.end - without.length, end: span.end });
    if (!isKnown || !other) return undefined;
    if (role === without || this.#includes(role).includes(without))
      return this.#report(
        'statement_role',
        `\`${role}\` always has \`${without}\`, so the statement is about no caller`,
        span,
      );
    return { kind: 'role', role, without };
  }

  #includes(role: string): readonly string[] {
    const found = this.#place.catalog.roles.get(role) as { readonly includes?: readonly string[] } | undefined;
    return found?.includes ?? [];
  }

  #isRole(name: string, span: Span): boolean {
    const roles = [...this.#place.catalog.roles.keys()].filter((role) => role !== GUEST);
    if (roles.includes(name)) return true;
    this.#unknown('role', [...roles, ...WORDS_OF_CALLERS], span, name);
    return false;
  }

  #isMember({ name, fields, relations }: CatalogCollection, member: string, span: Span): boolean {
    if (fields.has(member) || relations.get(member)?.kind === 'belongs_to') return true;
    const known = [
      ...fields.keys(),
      ...[...relations.values()].flatMap((each) => (each.kind === 'belongs_to' ? each.name : [])),
    ];
    if (!this.#place.broken.has(member)) this.#unknown(`field of \`${name}\``, known, span, member);
    return false;
  }

  /** Undefined: the statement may name `restore`. `can … them` is about one record, and a deleted one takes no other action. */
  #whyNotRestored({ name, softDelete }: Bare, parts: StatementParts): string | undefined {
    if (softDelete === undefined)
      return `\`${name}\` keeps no deleted records; add \`soft_delete: true\`, or remove \`restore\``;
    if (parts.text('implied') === undefined) return undefined;
    return 'a deleted record takes no other action; expected list, read, create, update or delete';
  }

  #actions<A extends RuledAction>(
    parts: StatementParts,
    group: 'actions' | 'implied',
    known: readonly A[],
  ): readonly A[] | undefined {
    const { start } = parts.span(group);
    const words = [...(parts.text(group) ?? '').matchAll(/\w+/g)].filter(
      ({ 0: word }) => word !== 'or' && word !== 'and',
    );
    const read = words.map(({ 0: word, index }) => {
      const action = known.find((each) => each === word);
      if (action === undefined)
        this.#unknown('action', known, { start: start + index, end: start + index + word.length }, word);
      return action;
    });
    return read.every((action) => action !== undefined) ? read : undefined;
  }

  #where(parts: StatementParts, collection: string, action: RuledAction): Policy | undefined {
    const text = parts.text('where');
    if (text === undefined) return undefined;
    const { source, broken } = this.#place;
    const place = askedPlace<Catalog>({ collection, action }, this.#place.catalog);
    const { checked, issues } = examineErrors(text, place);
    const { start } = parts.span('where');
    const moved = (span: Span): Span => ({ start: span.start + start, end: span.end + start });
    for (const { code, message, span, fix } of issues) {
      if (broken.has(text.slice(span.start, span.end))) continue;
      const placed = fix && { span: moved(fix.span), replacement: fix.replacement };
      source.reportWithin({ code, message, path: this.#path }, moved(span), placed);
    }
    return checked && issues.length === 0 ? compileChecked({ checked, text, ...place }) : undefined;
  }

  #unknown(what: string, known: readonly string[], span: Span, name: string): void {
    const near = nearest(name, known);
    const hint = near === undefined ? `; there are ${known.join(', ')}` : hintOf(near);
    const fix = near === undefined ? undefined : { span, replacement: near };
    const finding = { code: 'statement_name', message: `unknown ${what} \`${name}\`${hint}`, path: this.#path };
    this.#place.source.reportWithin(finding, span, fix);
  }

  #report(code: string, message: string, span: Span): undefined {
    this.#place.source.reportWithin({ code, message, path: this.#path }, span);
  }
}

/** The places in the text of a statement that name a collection, its field, and a condition. */
export interface StatementPlaces {
  readonly collection: string;
  readonly action: RuledAction | undefined;
  readonly member: Span | undefined;
  readonly where: Span | undefined;
}

/** Undefined: the text is not a statement. */
export function placesInStatement(text: string): StatementPlaces | undefined {
  const match = STATEMENT_FORM.exec(text);
  if (match === null) return undefined;
  const parts = new StatementParts(match);
  const [word] = /\w+/.exec(parts.text('actions') ?? '') ?? [];
  return {
    collection: parts.text('target') ?? '',
    action: RULED_ACTIONS.find((each) => each === word),
    member: parts.text('member') === undefined ? undefined : parts.span('member'),
    where: parts.text('where') === undefined ? undefined : parts.span('where'),
  };
}

/** The parts of a statement, with their places in its text. */
class StatementParts {
  readonly #match: RegExpExecArray;

  constructor(match: RegExpExecArray) {
    this.#match = match;
  }

  text(name: string): string | undefined {
    return this.#match.groups?.[name];
  }

  /** The place of a part that is in the text. */
  span(name: string): Span {
    const [start, end] = this.#match.indices?.groups?.[name] ?? [0, 0];
    return { start, end };
  }
}
