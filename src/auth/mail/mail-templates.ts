/**
 * The templates of an application for its mails: `KIND.LANGUAGE.txt`, whose first line is the subject, and
 * `KIND.LANGUAGE.html`. They are read and tried with the schema.
 */
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { Eta } from 'eta';
import type { Schema } from '../../schema/model/model.ts';
import { reasonOf } from '../../thrown.ts';
import { type MailData, strict } from './mail-data.ts';
import { sampleData } from './mail-samples.ts';
import { MAIL_KINDS, type MailKind } from './outbox.ts';

/** `html` escapes what it interpolates. */
const ENGINES = { txt: new Eta({ autoEscape: false, autoTrim: false }), html: new Eta({ autoTrim: false }) } as const;
type TemplatePart = keyof typeof ENGINES;

type Render = (data: MailData) => string;

export interface TemplateIssue {
  readonly file: string;
  readonly message: string;
}

export class MailTemplates {
  readonly issues: readonly TemplateIssue[];
  readonly #templates: ReadonlyMap<string, Render>;

  private constructor(templates: ReadonlyMap<string, Render>, issues: readonly TemplateIssue[]) {
    this.#templates = templates;
    this.issues = issues;
  }

  /** @param cwd resolves the path of the schema file */
  static load(schema: Schema, cwd = process.cwd()): MailTemplates {
    const { templates: folder } = schema.mail;
    if (folder === undefined) return new MailTemplates(new Map(), []);
    const path = resolve(cwd, dirname(schema.file), folder);
    if (!existsSync(path) || !statSync(path).isDirectory())
      return new MailTemplates(new Map(), [{ file: folder, message: 'the folder of templates does not exist' }]);
    const issues: TemplateIssue[] = [];
    const templates = new Map<string, Render>();
    for (const name of readdirSync(path)
      .filter((each) => /^[^.].*\.(?:txt|html)$/.test(each))
      .sort()) {
      const file = join(folder, name);
      const named = templateName(name, schema.mail.languages);
      if (typeof named === 'string') issues.push({ file, message: named });
      else {
        try {
          const render = compiled(readFileSync(join(path, name), 'utf8'), named.part);
          requireUsable(render(sampleData(named.kind, schema)), named.part);
          templates.set(name, render);
        } catch (error) {
          issues.push({ file, message: reasonOf(error) });
        }
      }
    }
    return new MailTemplates(templates, issues);
  }

  /** Undefined: the application has none. */
  find(kind: MailKind, language: string, part: TemplatePart): Render | undefined {
    return this.#templates.get(`${kind}.${language}.${part}`);
  }
}

/** The words of a file name, or why it is not one. */
function templateName(name: string, languages: readonly string[]) {
  const [kind = '', language = '', part = '', ...rest] = name.split('.');
  const known = MAIL_KINDS.find((each) => each === kind);
  if (known === undefined) return `unknown kind \`${kind}\`; the kinds are ${MAIL_KINDS.join(', ')}`;
  if (!languages.includes(language) || rest.length > 0)
    return `expected \`${kind}.LANGUAGE.txt\` or \`.html\`; the languages are ${languages.join(', ')}`;
  return { kind: known, part: part as TemplatePart };
}

function compiled(text: string, part: TemplatePart): Render {
  const engine = ENGINES[part];
  const template = engine.compile(text);
  return (data) => engine.render(template, strict(data));
}

const MOST_SUBJECT = 200;

function requireUsable(rendered: string, part: TemplatePart): void {
  if (part === 'html') return;
  const { subject } = splitSubject(rendered);
  if (subject === '') throw new Error('expected the subject in the first line');
  if (subject.length > MOST_SUBJECT) throw new Error(`expected a subject of at most ${MOST_SUBJECT} characters`);
}

/** The subject is the first line. */
export function splitSubject(rendered: string): { readonly subject: string; readonly text: string } {
  const [subject = '', ...lines] = rendered.split(/\r?\n/);
  return { subject: subject.trim(), text: lines.join('\n').replace(/^\n+/, '') };
}
