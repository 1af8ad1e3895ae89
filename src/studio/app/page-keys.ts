/**
 * The keys of the open page. A control declares its key once, as `aria-keyshortcuts`. Its name, its work and its state are
 * those of the control, so that the key, the palette and the list of keys agree with what the page shows. An open dialog
 * has the keyboard for itself.
 */
export interface PageAction {
  /** As `aria-keyshortcuts` writes it. */
  readonly key: string;
  readonly title: string;
  /** Several where each row of a list has one. */
  readonly controls: readonly HTMLElement[];
}

/** A key acts in the row that has the focus; in another row it moves there first. */
const ROWS = 'tr, li, [role=group]';
/** A key with Ctrl works while a person types: for the form or the editor that has the focus. */
const FORMS = 'tr, article, form, [role=group]';
const TEXT_CONTROLS = 'input, select, textarea, [contenteditable]';
const NOT_TYPED = '[type=checkbox], [type=radio], [type=file]';

export const openDialog = (): Element | null => document.querySelector('dialog[open]');

/** True where a letter is text. */
export const isTyping = (target: EventTarget | null): boolean =>
  target instanceof HTMLElement && (target.isContentEditable || isTextControl(target));

const isTextControl = (control: HTMLElement): boolean =>
  control.matches('input, select, textarea') && !control.matches(NOT_TYPED);

/** The keyed controls that the page shows, by key and name. */
export function pageActions(): readonly PageAction[] {
  const keyed = (openDialog() ?? document).querySelectorAll<HTMLElement>('[aria-keyshortcuts]');
  const shown = [...keyed].filter((each) => each.checkVisibility());
  const actions = new Map<string, PageAction>();
  for (const control of shown) {
    const [key, title] = [control.getAttribute('aria-keyshortcuts')!, controlTitle(control)];
    const same = actions.get(`${key} ${title}`)?.controls ?? [];
    actions.set(`${key} ${title}`, { key, title, controls: [...same, control] });
  }
  return [...actions.values()];
}

function controlTitle(control: HTMLElement): string {
  const label = control instanceof HTMLInputElement ? control.labels?.[0] : undefined;
  // The label of a control in a row names the row.
  const ownLabel = control.closest(ROWS) === null ? control.ariaLabel : null;
  return (ownLabel ?? (label ?? control).textContent).trim();
}

/** A greyed control has its key, which shows the reason. */
export const isActionOn = ({ controls }: PageAction): boolean =>
  controls.some((control) => isOn(control) && control.ariaDisabled !== 'true');

const isOn = (control: HTMLElement): boolean => !control.matches(':disabled');

/** → true once a control has the key. Enter is for the control that has the focus: the browser sends its form. */
export function pressPageKey(key: string): boolean {
  if (key === 'Enter') return false;
  const controls = pageActions().flatMap((action) => (action.key === key ? action.controls : []));
  return pressOneOf(controls.filter(isOn), key.startsWith('Control+') ? FORMS : ROWS);
}

/** A choice of the palette names the action, so that its only control acts wherever the focus is. */
export function runAction({ controls }: PageAction): void {
  const [only, ...others] = controls.filter(isOn);
  if (only !== undefined && others.length === 0) useControl(only);
  else pressOneOf(controls.filter(isOn), ROWS);
}

function pressOneOf(controls: readonly HTMLElement[], places: string): boolean {
  const placeOf = (control: HTMLElement): Element | null => control.closest(places);
  const isHere = (control: HTMLElement): boolean => placeOf(control)?.contains(document.activeElement) === true;
  const chosen = controls.find(isHere) ?? controls.find((control) => placeOf(control) === null) ?? controls[0];
  if (chosen === undefined) return false;
  if (placeOf(chosen) === null || isHere(chosen)) useControl(chosen);
  else chosen.focus();
  return true;
}

function useControl(control: HTMLElement): void {
  if (control instanceof HTMLFormElement) control.querySelector<HTMLElement>(TEXT_CONTROLS)?.focus();
  else if (isTextControl(control)) control.focus();
  else {
    // The next step is inside of it.
    if (control.matches('summary')) control.focus();
    control.click();
  }
}

/** The key of an event as `aria-keyshortcuts` writes it. */
export function shortcutOf({ key, ctrlKey, metaKey, shiftKey }: KeyboardEvent): string {
  const isLetter = /^\p{L}$/u.test(key);
  // Caps Lock changes the letter, and Shift is a part of other signs.
  const parts = [ctrlKey || metaKey ? 'Control' : '', isLetter && shiftKey ? 'Shift' : ''];
  return [...parts.filter(Boolean), isLetter ? key.toLowerCase() : key].join('+');
}

/** `Ctrl Shift D` for `Control+Shift+d`. */
export const shownShortcut = (key: string): string =>
  key.includes('+')
    ? key
        .split('+')
        .map((part) => (part === 'Control' ? 'Ctrl' : part.length === 1 ? part.toUpperCase() : part))
        .join(' ')
    : key;
