/** A product of docs/recipes: its schema, and its pages in a folder with the client, as its guide makes it. */
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { inject } from 'vitest';
import { StudioPage } from '../../studio/studio-browser.ts';
import { Browser, hasBrowser } from '../../support/browser/browser.ts';
import { bundleForBrowser } from '../../support/browser/bundle.ts';
import type { TestService } from '../../support/service.ts';

export class Product {
  readonly schema: string;
  readonly folder: string;
  /** The pages; `browse` fills it. */
  readonly site = mkdtempSync(join(tmpdir(), 'bylaw-product-'));
  /** A person each. */
  readonly #browsers: Browser[] = [];

  constructor(name: string) {
    this.folder = resolve(import.meta.dirname, `../../../docs/recipes/${name}`);
    this.schema = readFileSync(join(this.folder, 'bylaw.yaml'), 'utf8');
    cpSync(join(this.folder, 'public'), this.site, { recursive: true });
  }

  async browse(url: string): Promise<ProductPage> {
    writeFileSync(join(this.site, 'bylaw-client.js'), await bundleForBrowser('src/client/client.ts'));
    const browser = await Browser.open();
    this.#browsers.push(browser);
    return new ProductPage(await StudioPage.open(browser, url));
  }

  async close(): Promise<void> {
    for (const browser of this.#browsers) await browser.close();
    rmSync(this.site, { recursive: true, force: true });
  }
}

/** The pages make no difference to a database: one of the services shows them. */
export const showsPages = ({ kind }: TestService): boolean =>
  hasBrowser && (kind === 'postgres' || inject('postgresUrl') === '');

/** A page, used as a person does. */
export class ProductPage {
  readonly view: StudioPage;

  constructor(view: StudioPage) {
    this.view = view;
  }

  /** Fills the form by the names of its fields, and sends it by its first button, or the one of this value. */
  async submit(form: string, values: Readonly<Record<string, string>>, value = ''): Promise<void> {
    await this.view.page.evaluate(`(() => {
      const form = document.querySelector(${JSON.stringify(form)});
      for (const [name, value] of Object.entries(${JSON.stringify(values)})) form.elements[name].value = value;
      form.requestSubmit(form.querySelector(${JSON.stringify(value === '' ? 'button:not([type])' : `button[value=${value}]`)}));
    })()`);
  }

  async signIn({ email, password }: { readonly email: string; readonly password: string }): Promise<void> {
    await this.view.click('#account button', 'Sign in');
    await this.submit('#sign-in form', { email, password }, 'login');
    await this.shows('#account', 'Sign out');
  }

  async signOut(): Promise<void> {
    await this.view.click('#account button', 'Sign out');
    await this.shows('#account', 'Sign in');
  }

  /** Clicks the button of this text on the card that is about something. */
  async press(cards: string, about: string, text: string): Promise<void> {
    const button = `[...document.querySelectorAll(${JSON.stringify(cards)})].find((each) => each.textContent.includes(${JSON.stringify(about)}))
      .querySelectorAll('button').values().find((each) => each.textContent === ${JSON.stringify(text)})`;
    await this.view.page.until(button);
    await this.view.page.evaluate(`(${button}).click()`);
  }

  /** Waits until the visible element has the text. */
  async shows(selector: string, text: string): Promise<void> {
    const isShown = this.view.page.until(`[...document.querySelectorAll(${JSON.stringify(selector)})].some((each) =>
      each.checkVisibility() && each.textContent.includes(${JSON.stringify(text)}))`);
    await isShown.catch(async (error: Error) => {
      throw new Error(`${error.message}; the page says: ${await this.view.texts('[role=alert]')}`);
    });
  }

  /** The page in a narrow window, in both colour schemes: nothing overflows, and no rule of WCAG 2.2 AA is broken. */
  async faults(name: string): Promise<readonly unknown[]> {
    const faults: unknown[] = [];
    for (const theme of ['dark', 'light'] as const) {
      await this.view.size(360);
      await this.view.theme(theme);
      await this.view.shot(`${name}-360-${theme}`);
      faults.push(...(await this.view.faults()));
      if ((await this.view.overflow()) > 0) faults.push(`${name} overflows`);
    }
    await this.view.size(1200);
    await this.view.shot(`${name}-1200`);
    return faults;
  }
}
