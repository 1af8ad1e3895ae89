// @module-tag long
/** Mails of a real SMTP server, whose links a browser opens, after a scanner has opened them. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { Browser, type Page } from '../../support/browser/browser.ts';
import { describeInBrowser } from '../../support/browser/describe-in-browser.ts';
import { describeOnOne } from '../../support/service.ts';
import { codeOfApp } from '../authenticator.ts';
import { login, newEmail, newPerson, PASSWORD, SCHEMA } from '../people.ts';
import { MailServer } from './mail-server.ts';

const NEXT = 'an even longer phrase';
const mailServer = new MailServer();
await mailServer.start();
afterAll(() => mailServer.close());

describeOnOne(
  'mails',
  (service) => {
    describeInBrowser('in a browser', () => {
      let browser: Browser;
      let page: Page;
      const origin = () => service.url.replace('127.0.0.1', 'localhost');
      beforeAll(async () => {
        browser = await Browser.open();
        page = await browser.page(`${origin()}/auth/sign-in`);
        await page.send('WebAuthn.enable');
        await page.send('WebAuthn.addVirtualAuthenticator', {
          options: {
            protocol: 'ctap2',
            transport: 'internal',
            hasResidentKey: true,
            hasUserVerification: true,
            isUserVerified: true,
            automaticPresenceSimulation: true,
          },
        });
      });
      afterAll(() => browser?.close());

      const shows = (words: string) => page.until(`document.body?.innerText.includes(${JSON.stringify(words)})`);
      const goTo = (address: string) => page.send('Page.navigate', { url: address });
      const type = (name: string, value: string) =>
        page.evaluate(
          `void (document.querySelector('[name=${name}]:not([type=hidden])').value = ${JSON.stringify(value)})`,
        );
      const press = (button: string) =>
        page.evaluate(
          `[...document.querySelectorAll('button,a')].find((each) => each.innerText === ${JSON.stringify(button)}).click()`,
        );
      const forgetSession = () => page.send('Network.clearBrowserCookies');

      /** Opens the link of a mail as a scanner does, and returns it. */
      async function scanned(mail: string): Promise<string> {
        const link = /<a href="([^"]+)"/.exec(mail)![1]!;
        for (const method of ['HEAD', 'GET', 'GET']) expect((await fetch(link, { method })).status).toBe(200);
        return link;
      }

      /** Shows the mail itself, and clicks its link. */
      async function click(mail: string): Promise<void> {
        await scanned(mail);
        await goTo('about:blank');
        await page.until('location.href === "about:blank" && document.readyState === "complete"');
        const { frameTree } = (await page.send('Page.getFrameTree')) as { frameTree: { frame: { id: string } } };
        const html = mail.replaceAll(service.url, origin());
        await page.send('Page.setDocumentContent', { frameId: frameTree.frame.id, html });
        await page.evaluate('document.querySelector("a").click()');
        await page.until('location.pathname.startsWith("/auth/") && document.readyState === "complete"');
      }

      async function signIn(email: string, password = PASSWORD): Promise<void> {
        await forgetSession();
        await goTo(`${origin()}/auth/sign-in`);
        await shows('Password');
        await type('email', email);
        await type('password', password);
        await press('Sign in');
      }

      test('an address is confirmed by a click, and not before', async () => {
        const person = await newPerson(service.anonymous);
        await person.client.post('/api/auth/email/verify/request');
        await click(await mailServer.htmlFor(person.email, 'confirm it'));
        await shows('Confirm that this address is yours');
        expect((await person.client.get('/api/auth/me')).body.user.email_verified).toBe(false);
        await press('Confirm');
        await shows('Your email address is confirmed');
        expect((await person.client.get('/api/auth/me')).body.user.email_verified).toBe(true);
      });

      test('a forgotten password is set in a browser from beginning to end', async () => {
        const { email } = await newPerson(service.anonymous);
        await goTo(`${origin()}/auth/sign-in`);
        await shows('Forgot your password?');
        await press('Forgot your password?');
        await shows('A mail with a link');
        await type('email', email);
        await press('Send the mail');
        await shows('Look into your mailbox');
        await click(await mailServer.htmlFor(email, 'new password'));
        await type('password', NEXT);
        await press('Set the password');
        await shows('Your password is set');
        await login(service.anonymous, email, NEXT);
      });

      test('an invitation is accepted, and a new address is confirmed', async () => {
        const admin = await service.user('admin');
        const email = newEmail('invited');
        await admin.client.post('/api/users/invite', { email, roles: ['member'] });
        await click(await mailServer.htmlFor(email, 'invited'));
        await type('password', PASSWORD);
        await press('Make the account');
        await shows('Your account is made');
        const person = await login(service.anonymous, email);
        const next = newEmail('next');
        await person.client.post('/api/auth/email/change/request', { email: next, password: PASSWORD });
        await click(await mailServer.htmlFor(next, 'this address'));
        await press('Confirm');
        await shows('Your account has the new address');
        await login(service.anonymous, next);
      });

      test('a second factor is set up on its page, asked after the link of a mail, and removed', async () => {
        const { email, client } = await newPerson(service.anonymous);
        await client.post('/api/auth/email/verify/request');
        await click(await mailServer.htmlFor(email, 'confirm it'));
        await press('Confirm');
        await shows('is confirmed');
        await forgetSession();
        await goTo(`${origin()}/auth/second-factor`);
        await shows('Sign in first');
        await signIn(email);
        await shows('You are signed in');
        await press('Second factor');
        await shows('Set up an authenticator app');
        await press('Set up an authenticator app');
        await page.until('document.querySelector("svg path") !== null');
        const secret = await page.evaluate<string>('document.querySelector("code").innerText');
        await type('code', '000000');
        await press('Confirm');
        await shows('code is wrong');
        await press('Set up an authenticator app');
        await page.until('document.querySelector("svg path") !== null');
        const newSecret = await page.evaluate<string>('document.querySelector("code").innerText');
        expect(newSecret).not.toBe(secret);
        await type('code', codeOfApp(newSecret));
        await press('Confirm');
        await shows('Keep these codes');
        const codes = await page.evaluate<string[]>(
          '[...document.querySelectorAll("code")].map((each) => each.innerText)',
        );
        expect(codes).toHaveLength(10);
        expect(await mailServer.htmlFor(email, 'An authenticator app was added')).toBeTruthy();
        await forgetSession();
        await service.anonymous.post('/api/auth/otp/request', { email });
        await click(await mailServer.htmlFor(email, 'sign in with this address'));
        await press('Sign in');
        await shows('authenticator app');
        expect((await page.send('Network.getCookies')).cookies).toEqual([]);
        await type('code', codeOfApp(newSecret, 1));
        await press('Sign in');
        await shows('You are signed in');
        await press('Second factor');
        await shows('Make new recovery codes');
        await type('password', PASSWORD);
        await press('Remove it by the password');
        await shows('The second factor is removed');
        expect((await login(service.anonymous, email)).access).toBeTruthy();
      });

      test('a passkey is made on its page, and signs in', async () => {
        const { email } = await newPerson(service.anonymous);
        await signIn(email);
        await shows('You are signed in');
        await press('Passkeys');
        await shows('Name of the new passkey');
        await type('name', 'My <b> phone');
        await press('Add a passkey');
        await shows('A new passkey');
        await press('Make the passkey');
        await shows('The passkey My <b> phone is yours');
        expect(await mailServer.htmlFor(email, 'A passkey was added')).toBeTruthy();
        await forgetSession();
        await goTo(`${origin()}/auth/sign-in?redirect_to=/auth/passkeys`);
        await shows('Sign in with a passkey');
        await press('Sign in with a passkey');
        await shows('Your device or your security key');
        await press('Continue');
        await shows('Use a passkey');
        await press('Use a passkey');
        await shows('Remove My <b> phone');
        await press('Remove My <b> phone');
        await shows('The passkey is removed');
      });
    });
  },
  {
    schema: `${SCHEMA}mail: { otp: true, from: 'App <app@example.org>' }\n`,
    env: { SMTP_URL: mailServer.url },
  },
);
