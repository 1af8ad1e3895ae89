/** `was` of the file: the name that a collection, field or relation had, which nothing else may have. */
import type { DocumentPath, Report } from '../file/issue.ts';
import type { CollectionShape } from '../file/shape.ts';
import type { Collection } from './model.ts';

interface DeclaredMembers extends Pick<Collection, 'fields' | 'relations'> {
  readonly path: DocumentPath;
}
interface RenamedCollection extends Pick<Collection, 'kind'> {
  readonly shape: CollectionShape;
  readonly path: DocumentPath;
}

export function checkFormerNames({ fields, relations, path }: DeclaredMembers, report: Report): void {
  const seen = new Set<string>();
  for (const [part, members] of [
    ['fields', fields],
    ['relations', relations],
  ] as const) {
    for (const member of members.values()) {
      const was = 'was' in member ? member.was : undefined;
      if (was === undefined) continue;
      const at = [...path, part, member.name, 'was'];
      if (fields.has(was) || relations.has(was)) {
        const message = `\`${was}\` is still the name of a member; \`was\` is a name that is gone`;
        report({ code: 'invalid_was', message, path: at });
      } else if (seen.has(was))
        report({ code: 'invalid_was', message: `\`${was}\` is the former name of another member already`, path: at });
      seen.add(was);
    }
  }
}

export function checkFormerCollections(declared: ReadonlyMap<string, RenamedCollection>, report: Report): void {
  const seen = new Set<string>();
  for (const { shape, kind, path } of declared.values()) {
    const { was } = shape;
    if (was === undefined) continue;
    const invalid = (message: string): void => report({ code: 'invalid_was', message, path: [...path, 'was'] });
    if (kind !== 'plain') invalid(`\`${kind}\` cannot be renamed, so it has no former name`);
    else if (declared.has(was)) invalid(`\`${was}\` is still the name of a collection; \`was\` is a name that is gone`);
    else if (seen.has(was)) invalid(`\`${was}\` is the former name of another collection already`);
    seen.add(was);
  }
}
