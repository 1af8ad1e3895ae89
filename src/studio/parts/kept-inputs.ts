/** The controls of a small form as the tab keeps them until the form is sent. Passwords and files are not kept. */
import { keepTabDraft, keptTabDraft } from '../app/tab-drafts.ts';

/** Values by the names of controls; of boxes with one name, the values of those that are checked. */
type KeptInputs = Readonly<Record<string, readonly string[]>>;

type KeptControl = HTMLInputElement | HTMLSelectElement | HTMLTextAreaElement;

const nameOfInputs = (form: string): string => `inputs:${form}`;

const controlsOf = (form: HTMLFormElement): readonly KeptControl[] =>
  [...form.querySelectorAll<KeptControl>('input, select, textarea')].filter(
    ({ name, type }) => name !== '' && type !== 'password' && type !== 'file',
  );

const isBox = (control: KeptControl): control is HTMLInputElement =>
  control.type === 'checkbox' || control.type === 'radio';

export function keepInputs(name: string, form: HTMLFormElement): void {
  const kept: KeptInputs = Object.fromEntries(
    [...Map.groupBy(controlsOf(form), (control) => control.name)].map(([each, controls]) => [
      each,
      controls.filter((control) => !isBox(control) || control.checked).map(({ value }) => value),
    ]),
  );
  keepTabDraft(nameOfInputs(name), kept);
}

/** → true if the tab has a draft. */
export function restoreInputs(name: string, form: HTMLFormElement): boolean {
  const kept = keptTabDraft<KeptInputs>(nameOfInputs(name));
  if (kept === undefined) return false;
  for (const control of controlsOf(form)) {
    const values = kept[control.name];
    if (values === undefined) continue;
    if (isBox(control)) control.checked = values.includes(control.value);
    else control.value = values[0] ?? '';
  }
  return true;
}

export const forgetInputs = (name: string): void => keepTabDraft(nameOfInputs(name), undefined);
