/** A signed-in page of the studio in Chromium. Violations of its policy and errors of its scripts are kept. */
import { readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { expect } from 'vitest';
import type { Browser, Page } from '../support/browser/browser.ts';
import type { User } from '../support/service.ts';

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

const WATCH = `
  globalThis.faults = [];
  addEventListener('securitypolicyviolation', (event) => faults.push('CSP: ' + event.violatedDirective + ' ' + event.blockedURI));
  addEventListener('error', (event) => faults.push(String(event.message)));
  addEventListener('unhandledrejection', (event) => faults.push(String(event.reason)));
`;

/** A folder, for people who look at the pages. */
const SHOTS = process.env.STUDIO_SHOTS;
/** A window of 1280 pixels at a zoom of 400 %. */
const NARROW = 320;
const WIDTHS = [
  [NARROW, 'dark'],
  [360, 'light'],
  [768, 'light'],
  [1440, 'dark'],
] as const;

export class StudioPage {
  readonly page: Page;
  readonly #url: string;

  private constructor(page: Page, url: string) {
    this.page = page;
    this.#url = url;
  }

  static async open(browser: Browser, url: string): Promise<StudioPage> {
    const page = await browser.page('about:blank?start');
    await page.send('Page.enable');
    await page.send('Page.addScriptToEvaluateOnNewDocument', { source: WATCH });
    const studio = new StudioPage(page, url);
    await studio.theme('light');
    return studio;
  }

  /** The same page for another address of the service. */
  at(url: string): StudioPage {
    return new StudioPage(this.page, url);
  }

  /** Waits until the selector finds an element. */
  async visit(path: string, selector: string): Promise<void> {
    await this.page.send('Page.navigate', { url: `${this.#url}${path}` });
    await this.page.until(`location.href === ${JSON.stringify(`${this.#url}${path}`)} && ${found(selector)}`);
  }

  /** Forgets the session before, and opens the first page as this user. */
  async beginAs(user: Pick<User, 'email' | 'password'>): Promise<void> {
    await this.page.send('Network.clearBrowserCookies');
    await this.visit('/studio', '.sign-in-page');
    await this.signIn(user);
  }

  /** As a person does: the link of the page, the form of the service, and the page again. */
  async signIn(user: Pick<User, 'email' | 'password'>): Promise<void> {
    await this.askSignIn(user);
    await this.until('.top');
  }

  /** Fills and sends the form of the service to which the page leads. */
  async askSignIn({ email, password }: Pick<User, 'email' | 'password'>): Promise<void> {
    await this.click('a.primary', 'Sign in');
    await this.until('form [name=password]');
    await this.fill({ email, password });
    await this.sendForm();
  }

  /** Sends the only form of a page without scripts, and waits for the next page. */
  async sendForm(): Promise<void> {
    await this.page.evaluate(`globalThis.isSent = true; document.querySelector('form').requestSubmit()`);
    await this.page.until(`globalThis.isSent === undefined && document.readyState === 'complete'`);
  }

  /** Fills the fields of a form by their names. */
  fill(values: Readonly<Record<string, string>>): Promise<unknown> {
    return this.page.evaluate(`(() => {
      for (const [name, value] of Object.entries(${JSON.stringify(values)})) {
        const field = document.querySelector('[name="' + name + '"]');
        field.value = value;
        field.dispatchEvent(new Event('input', { bubbles: true }));
        field.dispatchEvent(new Event('change', { bubbles: true }));
      }
    })()`);
  }

  /** Chooses an option of the select. */
  choose(selector: string, option: string): Promise<unknown> {
    return this.page.evaluate(`(() => {
      const field = document.querySelector(${JSON.stringify(selector)});
      field.value = ${JSON.stringify(option)};
      field.dispatchEvent(new Event('change', { bubbles: true }));
    })()`);
  }

  /** Clicks the element of the selector whose text or label is this. */
  async click(selector: string, text?: string): Promise<void> {
    const element = `[...document.querySelectorAll(${JSON.stringify(selector)})].find((each) =>
      ${JSON.stringify(text ?? null)} === null || [each.textContent.trim(), each.ariaLabel].includes(${JSON.stringify(text ?? '')}))`;
    await this.page.until(element);
    await this.page.evaluate(`(${element}).click()`);
  }

  /** Replaces the text of the last editor of the page, as a person does who selects all of it first. */
  async write(text: string): Promise<void> {
    await this.until('.cm-content');
    await this.page.evaluate(`[...document.querySelectorAll('.cm-content')].at(-1).focus()`);
    await this.press('a', 2);
    await this.page.send('Input.insertText', { text });
  }

  /** The text of the last editor of the page. */
  written(): Promise<string> {
    return this.page.until<string>(`[...document.querySelectorAll('.cm-content')].at(-1)?.innerText`);
  }

  texts(selector: string): Promise<readonly string[]> {
    return this.page.evaluate(
      `[...document.querySelectorAll(${JSON.stringify(selector)})].map(({ textContent }) => textContent)`,
    );
  }

  until(selector: string): Promise<unknown> {
    return this.page.until(found(selector));
  }

  /** A key with the modifiers of the debugging protocol: 2 is Ctrl. */
  async press(key: string, modifiers = 0): Promise<void> {
    const text = key.length === 1 && modifiers === 0 ? key : undefined;
    const code = CODES[key];
    await this.page.send('Input.dispatchKeyEvent', {
      type: 'keyDown',
      key,
      modifiers,
      ...(text === undefined ? {} : { text }),
      ...(code === undefined ? {} : { windowsVirtualKeyCode: code, ...(key === 'Enter' ? { text: '\r' } : {}) }),
    });
    await this.page.send('Input.dispatchKeyEvent', { type: 'keyUp', key, modifiers });
  }

  /** The controls of the page that the Tab key misses, and those whose focus is not visible. */
  async missedByTab(): Promise<readonly string[]> {
    const count = await this.page.evaluate<number>(`(() => {
      globalThis.tabbed = [...document.querySelectorAll(${JSON.stringify(CONTROLS)})].filter((each) =>
        each.tabIndex >= 0 && !each.disabled && each.checkVisibility({ visibilityProperty: true }));
      tabbed.lost = 0;
      globalThis.reached = new Set();
      globalThis.unseen = new Set();
      return tabbed.length;
    })()`);
    const note = `(() => {
      const focused = document.activeElement;
      // A field that is replaced leaves the focus to nothing, for a moment.
      if (focused === document.body) return ++tabbed.lost > 2;
      // A field of a time has a stop for each part.
      if (focused === tabbed.last) return false;
      tabbed.last = focused;
      if (reached.has(focused)) return true;
      reached.add(focused);
      // An editor shows its focus some milliseconds later.
      const isEditor = focused.closest('.cm-editor') !== null;
      if (!isEditor && getComputedStyle(focused).outlineStyle === 'none') unseen.add(focused);
      return false;
    })()`;
    for (let i = 0; i < count + MOST_OTHERS; i++) {
      await this.press('Tab');
      if (await this.page.evaluate<boolean>(note)) break;
    }
    return this.page.evaluate(`[...unseen, ...tabbed.filter((each) => each.isConnected && !reached.has(each))]
      .map(({ outerHTML }) => outerHTML.slice(0, 120))`);
  }

  async size(width: number): Promise<void> {
    await this.page.send('Emulation.setDeviceMetricsOverride', {
      width,
      height: 800,
      deviceScaleFactor: 1,
      mobile: false,
    });
  }

  async theme(value: 'light' | 'dark'): Promise<void> {
    // A colour that is on its way to another breaks the rules of contrast.
    const still = { name: 'prefers-reduced-motion', value: 'reduce' };
    await this.page.send('Emulation.setEmulatedMedia', { features: [still, { name: 'prefers-color-scheme', value }] });
  }

  /** The rules of WCAG 2.2 AA that the page breaks, with the elements; buttons without a key; and the faults of its scripts. */
  async faults(): Promise<readonly string[]> {
    await this.page.evaluate(`globalThis.axe === undefined && (() => { ${AXE} })()`);
    const broken = await this.page.evaluate<readonly string[]>(`axe.run(document, {
      runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'], resultTypes: ['violations'],
    }).then(({ violations }) => violations.map(({ id, nodes }) => id + ': ' + nodes.map(({ html }) => html.slice(0, 120)).join(' | ')))`);
    const keyless = await this.page.evaluate<readonly string[]>(KEYLESS);
    return [...broken, ...keyless, ...(await this.page.evaluate<readonly string[]>('faults'))];
  }

  /** The page at the path fits into four widths, in both themes; the narrow one meets WCAG. @param ready a selector */
  async expectFits(path: string, ready: string, name = path.split(/[/?]/, 3).at(-1)): Promise<void> {
    for (const [width, theme] of WIDTHS) {
      await this.size(width);
      await this.theme(theme);
      // A picture shows what a window of this width begins with.
      if (width === NARROW || SHOTS !== undefined) await this.visit(path, ready);
      await this.shot(`${name}-${width}-${theme}`);
      expect([path, width, await this.overflow()]).toEqual([path, width, 0]);
      if (width === NARROW) expect([path, await this.faults()]).toEqual([path, []]);
    }
    await this.size(1440);
    await this.theme('light');
  }

  /** Keeps a picture of the page in the folder of `STUDIO_SHOTS`, for people to look at. */
  async shot(name: string): Promise<void> {
    if (SHOTS === undefined) return;
    const { data } = await this.page.send('Page.captureScreenshot', { format: 'png' });
    writeFileSync(join(SHOTS, `${name}.png`), Buffer.from(String(data), 'base64'));
  }

  /** Pixels by which the document, or the part of it that scrolls, is wider than the window. */
  overflow(): Promise<number> {
    return this.page.evaluate(`Math.max(0, ...[document.documentElement, ...document.querySelectorAll('.page')]
      .map(({ scrollWidth, clientWidth }) => scrollWidth - clientWidth))`);
  }
}

/** Buttons that neither declare a key nor show one. The grid has keys of its own for its header. */
const KEYLESS = `[...document.querySelectorAll('.top ~ * :is(button, a.button), .top :is(button, a.button)')]
  .filter((each) => each.checkVisibility() && !each.hasAttribute('aria-keyshortcuts') &&
    each.querySelector('kbd') === null && each.closest('[role=columnheader]') === null)
  .map(({ outerHTML }) => 'no key: ' + outerHTML.slice(0, 120))`;
const found = (selector: string): string => `document.querySelector(${JSON.stringify(selector)}) !== null`;
/** Elements that take the keyboard. */
const CONTROLS = 'a[href], button, input, select, textarea, summary, [tabindex], [contenteditable="true"]';
/** Parts that scroll take it as well. */
const MOST_OTHERS = 20;
const CODES: Readonly<Record<string, number>> = { Enter: 13, Escape: 27, ArrowDown: 40, ArrowRight: 39, Tab: 9 };
