/** The script of pages that use a passkey: `@simplewebauthn/browser`, and the lines that fill in a form. Not a route. */
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { memoized } from '../../memoized.ts';

/** A form is sent with the response of the authenticator, as JSON. */
const FILL = `
for (const form of document.querySelectorAll('[data-create],[data-get]')) {
  form.addEventListener('submit', async (event) => {
    event.preventDefault();
    const { startRegistration, startAuthentication } = SimpleWebAuthnBrowser;
    const { create, get } = form.dataset;
    try {
      const response = await (create === undefined
        ? startAuthentication({ optionsJSON: JSON.parse(get) })
        : startRegistration({ optionsJSON: JSON.parse(create) }));
      form.elements.response.value = JSON.stringify(response);
      form.submit();
    } catch (error) {
      const alert = document.createElement('p');
      alert.setAttribute('role', 'alert');
      alert.textContent = 'The browser used no passkey: ' + error.message;
      form.before(alert);
    }
  });
}
`;

/** Undefined: the package is not installed, so no page offers passkeys. */
export const passkeyScript = memoized((): string | undefined => {
  try {
    const module = createRequire(import.meta.url).resolve('@simplewebauthn/browser');
    const bundle = readFileSync(new URL('../dist/bundle/index.umd.min.js', `file://${module}`), 'utf8');
    return `${bundle}\n${FILL}`;
  } catch {
    return undefined;
  }
});
