/** Text into HTML. Everything that the page shows goes through one of these, or through `html`. */
import { html } from '../../pages/escaped.ts';

/** Makes an id, and the links to it. */
export const attribute = (value: string): string => html(value.replaceAll(/\s/g, '-'));
export const code = (value: string): string => `<code>${html(value)}</code>`;
/** Backticks mark code. */
export const prose = (value: string): string => html(value).replaceAll(/`([^`]+)`/g, '<code>$1</code>');
