/** The pages of accounts. They are not in the OpenAPI document. */
import type { Context } from 'koa';
import type { SignedIn } from '../../auth/auth.ts';
import { checkRedirectTo } from '../../auth/oauth/redirect-to.ts';
import type { App } from '../../http/app.ts';
import { readForm } from '../../http/form-body.ts';
import { notFoundProblem } from '../../http/gate.ts';
import { queryOf } from '../../http/request.ts';
import type { Route } from '../../http/route.ts';
import { PROBLEMS, Problem, type ProblemCode } from '../../problem.ts';
import { CHALLENGE_COOKIE, redirect, setCookie, setSessionCookie } from '../auth/tokens-answer.ts';
import type { AccountPage, Submitted } from './account-page.ts';
import { accountLinks, passkeysPage, secondFactorPage, userAt } from './factor-pages.ts';
import { drawPage, needsScript, pagePolicy, type ShownPage } from './form-page.ts';
import { emailPage, forgotPage, invitePage, resetPage, verifyPage } from './mail-pages.ts';
import { passkeyScript } from './passkey-script.ts';
import { SIGNED_IN } from './provider-links.ts';
import { challengePage, codePage, loginPage, passkeyPage, setupPage, signInPage } from './sign-in-pages.ts';

const ACCOUNT_PAGES: readonly AccountPage[] = [
  signInPage,
  challengePage,
  forgotPage,
  resetPage,
  verifyPage,
  invitePage,
  loginPage,
  codePage,
  passkeyPage,
  secondFactorPage,
  passkeysPage,
  emailPage,
  setupPage,
];

/** The providers return the browser to it. */
const signedInRoute: Route = {
  method: 'GET',
  path: SIGNED_IN,
  door: 'optional',
  accepts: 'any',
  handle: (ctx, app) => showSignedIn(ctx, app),
};

const formRoutes = ACCOUNT_PAGES.flatMap((page): readonly Route[] => {
  const path = `/auth/${page.name}`;
  return [
    {
      method: 'GET',
      path,
      door: page.show ? 'optional' : 'public',
      accepts: 'any',
      handle: (ctx, app) => showPage(ctx, app, page),
    },
    {
      method: 'POST',
      path,
      door: page.knowsCaller ? 'optional' : 'public',
      ownSite: true,
      accepts: 'any',
      isKept: true,
      handle: (ctx, app) => submitForm(ctx, app, page),
    },
  ];
});

export const pageRoutes: readonly Route[] = [...formRoutes, signedInRoute];

/** Shows the error of a provider, asks for the second factor, or leads on. */
function showSignedIn(ctx: Context, app: App): void {
  const given = new Map(queryOf(ctx).flatMap(({ key, value }) => (value === undefined ? [] : [[key, value] as const])));
  const redirectTo = given.get('redirect_to') || undefined;
  const target = redirectTo === undefined ? undefined : checkRedirectTo(redirectTo, app.schema.origins);
  const values = new Map([['redirect_to', target ?? '']]);
  const challenge = ctx.cookies.get(CHALLENGE_COOKIE);
  if (challenge !== undefined) setCookie(ctx, app, { name: CHALLENGE_COOKIE, value: '', maxAge: 0, path: SIGNED_IN });
  const error = given.get('error');
  if (error !== undefined) sendPage(ctx, app, { ...formOf(app, signInPage, values), error: errorTitle(error) });
  else if (challenge !== undefined)
    sendPage(ctx, app, formOf(app, challengePage, new Map([...values, ['challenge', challenge]])));
  else if (ctx.state.caller?.kind === 'user') leadOn(ctx, app, target);
  else sendPage(ctx, app, formOf(app, signInPage, values));
}

/** `code`: from the address, so that anybody may have written it. */
const errorTitle = (code: string): string =>
  (Object.hasOwn(PROBLEMS, code) ? PROBLEMS[code as ProblemCode] : PROBLEMS.oauth_failed).title;

/** Changes nothing: scanners of mail open links. */
async function showPage(ctx: Context, app: App, page: AccountPage): Promise<void> {
  requireOffered(app, page);
  if (page.show !== undefined) {
    await showToUser(ctx, app, page);
    return;
  }
  const given = queryOf(ctx).flatMap(({ key, value }) => (value === undefined ? [] : [[key, value] as const]));
  sendPage(ctx, app, formOf(app, page, new Map(given)));
}

/** A page of a user; a visitor finds the way to sign in. */
async function showToUser(ctx: Context, app: App, page: AccountPage, problem?: Problem): Promise<void> {
  const { caller } = ctx.state;
  const isUser = caller?.kind === 'user';
  const signIn = { to: `/auth/sign-in?redirect_to=/auth/${page.name}`, text: 'Sign in' };
  const shown: ShownPage =
    isUser && page.show !== undefined
      ? await page.show(ctx, app, userAt(ctx))
      : { title: page.title, text: 'Sign in first.', links: [signIn] };
  sendPage(ctx, app, { ...shown, ...(problem && isUser && { error: problem.message }) });
}

async function submitForm(ctx: Context, app: App, page: AccountPage): Promise<void> {
  requireOffered(app, page);
  const given = await readForm(ctx);
  const values = { get: (name: string) => given.get(name) ?? '' };
  try {
    const redirectTo = given.get('redirect_to') || undefined;
    const target = redirectTo === undefined ? undefined : checkRedirectTo(redirectTo, app.schema.origins);
    answerSubmitted(ctx, app, await page.submit({ ctx, app, values }), target);
  } catch (error) {
    if (!(error instanceof Problem)) throw error;
    ctx.status = error.status;
    ctx.set(error.headers);
    if (page.show !== undefined) {
      await showToUser(ctx, app, page, error);
      return;
    }
    const hidden = page.name === 'code' && values.get('code') !== '';
    const shown = hidden ? { ...formOf(app, page, given), text: 'Ask for another code.' } : formOf(app, page, given);
    sendPage(ctx, app, { ...shown, error: error.message });
  }
}

function answerSubmitted(ctx: Context, app: App, submitted: Submitted, target: string | undefined): void {
  if ('show' in submitted) sendPage(ctx, app, submitted.show);
  else answerSignedIn(ctx, app, submitted.signedIn, target);
}

function answerSignedIn(ctx: Context, app: App, signedIn: SignedIn, target: string | undefined): void {
  if ('challenge' in signedIn) {
    const values = new Map([
      ['challenge', signedIn.challenge],
      ['redirect_to', target ?? ''],
    ]);
    sendPage(ctx, app, formOf(app, challengePage, values));
    return;
  }
  setSessionCookie(ctx, app, signedIn);
  leadOn(ctx, app, target);
}

function leadOn(ctx: Context, app: App, target: string | undefined): void {
  if (target === undefined)
    sendPage(ctx, app, { title: 'Signed in', text: 'You are signed in.', links: accountLinks() });
  else {
    ctx.set('Cache-Control', 'no-store');
    redirect(ctx, target);
  }
}

function formOf(app: App, page: AccountPage, values: ReadonlyMap<string, string>): ShownPage {
  const { name, title, text, fields, button, links } = page;
  return {
    title,
    ...(text !== undefined && { text }),
    forms: [{ page: name, fields, button, values }],
    ...(links !== undefined && { links: links(app, values.get('redirect_to')) }),
  };
}

function sendPage(ctx: Context, { schema, config }: App, page: ShownPage): void {
  const { appName, logo } = schema.mail;
  const script = needsScript(page) ? passkeyScript() : undefined;
  ctx.set('Content-Security-Policy', pagePolicy(schema, script));
  // The origin of a form: without a referrer, a browser would send `null`.
  ctx.set('Referrer-Policy', 'same-origin');
  ctx.set('Cache-Control', 'no-store');
  ctx.type = 'text/html; charset=utf-8';
  ctx.body = drawPage(page, { app: appName ?? new URL(config.baseUrl).host, logo, script });
}

function requireOffered(app: App, { isOffered }: AccountPage): void {
  if (isOffered !== undefined && !isOffered(app)) throw notFoundProblem();
}
