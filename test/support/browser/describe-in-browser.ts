import { describe } from 'vitest';
import { hasBrowser } from './browser.ts';

/** Without a browser the suite does not run, and says so loudly. */
export function describeInBrowser(name: string, suite: () => void): void {
  if (!hasBrowser) {
    process.stderr.write(
      `\nNOT TESTED: ${name}: there is no Chromium (Debian: apt-get install chromium-headless-shell)\n\n`,
    );
  }
  describe.skipIf(!hasBrowser)(name, suite);
}
