/** Resolves paths to facts of the request. */
import type { Path } from '../../../grammar/syntax.ts';
import { REQUEST_FACTS } from '../request/request-facts.ts';
import type { RequestOperand } from '../types.ts';
import { UTC } from '../values.ts';
import type { CheckerPlace } from './place.ts';

/** `@request.ip`, `@now.hour`. */
export function requestFact(path: Path, place: CheckerPlace): RequestOperand | undefined {
  const [first, next] = path.steps;
  const name = `${path.root}.${first!.name}`;
  const { type, isLocal } = REQUEST_FACTS.get(name)!;
  if (next !== undefined) {
    const message = `\`@${name}\` is a value and has no parts; nothing may follow it`;
    return place.report({
      code: 'path_not_walked',
      message,
      span: { start: next.span.start - 1, end: path.span.end },
    });
  }
  const detail = isLocal ? { detail: place.catalog.timezone ?? UTC } : {};
  return { kind: 'request', source: 'fact', name, ...detail, type, list: false, nullable: true, span: path.span };
}
