/** The licences of the packages whose code a bundle holds, for the folder that ships it. */
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

interface PackageFacts {
  readonly name: string;
  readonly version: string;
  readonly license: string;
}

/** @param modules paths of the modules of a bundle */
export function licencesOf(modules: readonly string[]): string {
  const folders = modules.flatMap((id) => /^.*\/node_modules\/(?:@[^/]+\/)?[^/]+/.exec(id) ?? []);
  return [...new Set(folders)]
    .sort()
    .map(licenceOf)
    .join(`\n${'-'.repeat(80)}\n\n`);
}

function licenceOf(folder: string): string {
  const { name, version, license } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as PackageFacts;
  const texts = globSync('{LICENSE,LICENCE,NOTICE}*', { cwd: folder }).sort();
  return [`${name} ${version} (${license})\n`, ...texts.map((file) => readFileSync(join(folder, file), 'utf8'))].join(
    '\n',
  );
}
