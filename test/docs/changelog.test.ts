// @module-tag long
/** The changelog lists released versions, and the next one; before the first release nothing can be changed or fixed. */
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { describe, expect, test } from 'vitest';

const ROOT = resolve(import.meta.dirname, '../..');
const readText = (file: string): string => readFileSync(join(ROOT, file), 'utf8');

interface Section {
  readonly version: string;
  readonly groups: readonly string[];
}

/** `## 0.1.0` or `## 0.1.0 - 2026-12-01`, with the names of its groups. */
function sectionsOf(changelog: string): readonly Section[] {
  const [, ...sections] = changelog.split(/^## /m);
  return sections.map((text) => ({
    version: text.split(/\s/, 1)[0]!,
    groups: [...text.matchAll(/^### (.*)$/gm)].map(([, group]) => group!),
  }));
}

/** Released versions by their tags; undefined without git, and in a shallow clone, which may lack tags. */
function releasedVersions(): readonly string[] | undefined {
  const git = (...args: readonly string[]): string =>
    execFileSync('git', args, { cwd: ROOT, encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }).trim();
  try {
    if (git('rev-parse', '--is-shallow-repository') === 'true') return undefined;
    return git('tag', '--list', 'v*')
      .split('\n')
      .filter(Boolean)
      .map((tag) => tag.slice(1));
  } catch {
    return undefined;
  }
}

/** The rules that the sections break. */
function brokenRules(sections: readonly Section[], current: string, released: readonly string[] | undefined): string[] {
  const versions = sections.map(({ version }) => version);
  const missing = [current, ...(released ?? [])].filter((version) => !versions.includes(version));
  const isUnreleased = released?.length === 0;
  const isOneAddition = sections.length === 1 && sections[0]!.groups.join() === 'Added';
  return [
    ...missing.map((version) => `version ${version} has no section`),
    ...(isUnreleased && !isOneAddition ? ['before the first release there is one section, with Added alone'] : []),
  ];
}

describe('the changelog', () => {
  test('the file has a section for each release and for the version of the package', () => {
    const { version } = JSON.parse(readText('package.json')) as { readonly version: string };
    expect(brokenRules(sectionsOf(readText('CHANGELOG.md')), version, releasedVersions())).toEqual([]);
  });

  const FIRST: Section = { version: '0.1.0', groups: ['Added'] };
  test.each<{ title: string; sections: readonly Section[]; released: readonly string[] | undefined; broken: string[] }>(
    [
      { title: 'one section before a release', sections: [FIRST], released: [], broken: [] },
      {
        title: 'a fix before a release',
        sections: [{ version: '0.1.0', groups: ['Added', 'Fixed'] }],
        released: [],
        broken: ['before the first release there is one section, with Added alone'],
      },
      {
        title: 'two sections before a release',
        sections: [FIRST, { version: 'Unreleased', groups: ['Added'] }],
        released: [],
        broken: ['before the first release there is one section, with Added alone'],
      },
      {
        title: 'a fix after a release',
        sections: [{ version: 'Unreleased', groups: ['Fixed'] }, FIRST],
        released: ['0.1.0'],
        broken: [],
      },
      {
        title: 'a release without a section',
        sections: [FIRST],
        released: ['0.0.9'],
        broken: ['version 0.0.9 has no section'],
      },
      {
        title: 'a fix where tags are unknown',
        sections: [{ ...FIRST, groups: ['Fixed'] }],
        released: undefined,
        broken: [],
      },
    ],
  )('the rules judge $title', ({ sections, released, broken }) => {
    expect(brokenRules(sections, '0.1.0', released)).toEqual(broken);
  });
});
