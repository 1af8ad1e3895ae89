import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { unwatchable, watchFolder } from '../../src/cli/support/watch-folder.ts';
import { ConfigError } from '../../src/config.ts';

test('a folder that is missing is refused with its name', () => {
  const folder = join(mkdtempSync(join(tmpdir(), 'bylaw-watch-')), 'missing');
  const watchMissing = (): unknown => watchFolder(folder, {}, () => undefined);
  expect(watchMissing).toThrow(ConfigError);
  expect(watchMissing).toThrow(`the folder ${folder} cannot be watched: ENOENT`);
});

test.each([
  ['EMFILE', 'raise fs.inotify.max_user_instances'],
  ['ENOSPC', 'raise fs.inotify.max_user_watches'],
  ['EACCES', 'cannot be watched: EACCES'],
])('the message of %s names what the operator can change', (code, text) => {
  const error = Object.assign(new Error(`${code}: too much, watch '/srv'`), { code });
  expect(unwatchable('/srv', error).message).toContain(text);
});
