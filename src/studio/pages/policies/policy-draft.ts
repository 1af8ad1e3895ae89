/** The edits of conditions that are not saved, and the text of the schema with them. Kept for the tab. */
import { signal } from '@preact/signals';
import { keepTabDraft, keptTabDraft } from '../../app/tab-drafts.ts';
import type { RulePlace, ServedSchema } from '../../data/schema-answer.ts';
import { quotedScalar } from '../../editor/quoted-scalar.ts';

interface PolicyDraft {
  /** The text that the edits are about. */
  readonly base: string;
  /** The text in which the conditions have their places: once rules came or went, no longer the one before. */
  readonly outline?: string;
  /** Conditions by the offset of their place in the text. */
  readonly edits: Readonly<Record<number, PlacedEdit>>;
}
interface PlacedEdit {
  readonly length: number;
  readonly text: string;
}

const DRAFT_NAME = 'policy-draft';
const NO_DRAFT: PolicyDraft = { base: '', edits: {} };

/** Undefined: as the tab has it. Another user has no draft, once the session is known. */
const draft = signal<PolicyDraft | undefined>(undefined);

function keepPolicyDraft(changed: PolicyDraft): void {
  draft.value = changed;
  keepTabDraft(DRAFT_NAME, changed);
}

/** The draft of this text; the draft of another text is not applied to it. */
function draftOf({ text = '' }: ServedSchema): PolicyDraft {
  const kept = draft.value ?? keptTabDraft<PolicyDraft>(DRAFT_NAME) ?? NO_DRAFT;
  return kept.base === text ? kept : { ...NO_DRAFT, base: text };
}

/** The text in which the conditions have their places. */
export const draftedOutline = (served: ServedSchema): string => draftOf(served).outline ?? served.text ?? '';

/** The condition with the edit, if there is one. */
export const draftedCondition = (served: ServedSchema, place: RulePlace | undefined, when: string): string =>
  (place && draftOf(served).edits[place.offset]?.text) ?? when;

export function editCondition(
  served: ServedSchema,
  place: RulePlace,
  given: { readonly when: string; readonly text: string },
): void {
  const before = draftOf(served);
  const { [place.offset]: _, ...others } = before.edits;
  const isBack = given.text === given.when;
  const edits = isBack ? others : { ...others, [place.offset]: { length: place.length, text: given.text } };
  keepPolicyDraft({ ...before, edits });
}

/** The text as a whole, such as with one more rule. */
export const editWhole = (served: ServedSchema, outline: string): void =>
  keepPolicyDraft({ base: served.text ?? '', outline, edits: {} });

export const dropDraft = (): void => keepPolicyDraft(NO_DRAFT);

export const isDrafted = (served: ServedSchema): boolean => draftedText(served) !== served.text;

/** The text of the schema with all edits. */
export function draftedText(served: ServedSchema): string | undefined {
  const { edits } = draftOf(served);
  if (served.text === undefined) return undefined;
  const places = Object.entries(edits).map(([offset, edit]) => ({ offset: Number(offset), ...edit }));
  return places
    .toSorted((a, b) => b.offset - a.offset)
    .reduce((text, { offset, length, text: condition }) => {
      return text.slice(0, offset) + quotedScalar(condition) + text.slice(offset + length);
    }, draftedOutline(served));
}
