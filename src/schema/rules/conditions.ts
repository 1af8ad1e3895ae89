/**
 * `conditions:` → named conditions that policies may call. Each body is checked by itself, after
 * those that it calls.
 */
import { parse } from '../../../grammar/parser.ts';
import type { Span } from '../../../grammar/syntax.ts';
import { examine } from '../../policy/check/checker.ts';
import { callsIn, type Head, namedCondition, readHead } from '../../policy/check/condition-calls.ts';
import type { Catalog, NamedCondition } from '../../policy/types.ts';
import { cutByComment, type DocumentPath } from '../file/issue.ts';
import type { SchemaFile } from '../file/shape.ts';
import type { SourceText } from '../file/source.ts';

interface ConditionsPlace {
  readonly source: SourceText;
  readonly catalog: Catalog;
}
export interface Conditions {
  readonly conditions: ReadonlyMap<string, NamedCondition>;
  /** Names of conditions with errors, which are reported where they are declared. */
  readonly broken: ReadonlySet<string>;
}
interface DeclaredCondition extends Head {
  readonly key: string;
  readonly text: string;
  readonly path: DocumentPath;
}

export function readConditions(file: SchemaFile, place: ConditionsPlace): Conditions {
  return new ConditionReader(place, declaredIn(file, place)).read();
}

function declaredIn(
  { conditions = {} }: SchemaFile,
  { source, catalog }: ConditionsPlace,
): readonly DeclaredCondition[] {
  const declared: DeclaredCondition[] = [];
  for (const [key, body] of Object.entries(conditions)) {
    const path = ['conditions', key];
    const head = readHead(key, catalog);
    if ('code' in head) source.report({ code: head.code, message: head.message, path, at: 'key' });
    else if (declared.some(({ name }) => name === head.name)) {
      const message = `the condition \`${head.name}\` is declared twice; expected another name`;
      source.report({ code: 'condition_repeated', message, path, at: 'key' });
    } else declared.push({ ...head, key, text: String(body), path });
  }
  return declared;
}

class ConditionReader {
  readonly #place: ConditionsPlace;
  readonly #declared: ReadonlyMap<string, DeclaredCondition>;
  readonly #done = new Map<string, NamedCondition>();
  readonly #broken = new Set<string>();

  constructor(place: ConditionsPlace, declared: readonly DeclaredCondition[]) {
    this.#place = place;
    this.#declared = new Map(declared.map((each) => [each.name, each]));
  }

  read(): Conditions {
    for (const declared of this.#declared.values()) this.#readOne(declared, []);
    return { conditions: this.#done, broken: this.#broken };
  }

  /** `within`: the conditions that led here, each by a call of the one before. */
  #readOne(declared: DeclaredCondition, within: readonly string[]): void {
    const { name, text } = declared;
    if (this.#done.has(name) || this.#broken.has(name)) return;
    const around = [...within, name];
    const { tree } = parse(text);
    for (const call of tree === undefined ? [] : callsIn(tree)) {
      const called = this.#declared.get(call.name.name);
      if (called === undefined) continue;
      if (around.includes(called.name)) {
        this.#reportCycle(declared, [...around.slice(around.indexOf(called.name)), called.name], call.name.span);
        return;
      }
      this.#readOne(called, around);
    }
    if (this.#broken.has(name)) return;
    if (!this.#isValid(declared)) this.#broken.add(name);
    else this.#done.set(name, namedCondition(declared, text, this.#catalog));
  }

  get #catalog(): Catalog {
    return { ...this.#place.catalog, conditions: this.#done };
  }

  #isValid({ text, path, parameters }: DeclaredCondition): boolean {
    const { source } = this.#place;
    if (source.cutByComment(path)) {
      source.reportCut(cutByComment(path));
      return false;
    }
    const { checked, issues } = examine(text, { catalog: this.#catalog, collection: '', action: 'list', parameters });
    for (const { code, severity, message, span, fix } of issues) {
      if (this.#broken.has(text.slice(span.start, span.end))) continue;
      source.reportWithin({ code, severity, message, path }, span, fix);
    }
    return checked !== undefined && !issues.some(({ severity }) => severity === 'error');
  }

  #reportCycle({ path }: DeclaredCondition, names: readonly string[], span: Span): void {
    const message = `conditions must not call each other in a circle: ${names.map((name) => `\`${name}\``).join(' → ')}`;
    this.#place.source.reportWithin({ code: 'condition_cycle', message, path }, span);
    for (const name of names) this.#broken.add(name);
  }
}
