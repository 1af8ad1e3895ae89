/**
 * The text field of an expression, with colours, marked errors and completions, in CodeMirror. A chunk of its own: only
 * `load-editor.ts` imports it.
 */
import {
  autocompletion,
  type CompletionContext,
  type CompletionResult,
  type CompletionSource,
  completionKeymap,
  startCompletion,
} from '@codemirror/autocomplete';
import { defaultKeymap, history, historyKeymap } from '@codemirror/commands';
import { bracketMatching } from '@codemirror/language';
import { type Diagnostic, setDiagnostics } from '@codemirror/lint';
import { EditorState } from '@codemirror/state';
import { Decoration, type DecorationSet, EditorView, type KeyBinding, keymap } from '@codemirror/view';
import type { ColouredSpan, Completion, PolicyIssue } from './policy-tools.ts';

interface CodeFieldOptions {
  readonly label: string;
  readonly text: string;
  /** The id of the element that lists the errors. */
  readonly issueList: string;
  readonly fixWord: string;
  readonly coloursOf: (text: string) => readonly ColouredSpan[];
  readonly completionsAt: (text: string, offset: number) => readonly Completion[];
  readonly onText: (text: string) => void;
  /** Called by the Enter key, which otherwise begins a line. */
  readonly onEnter?: () => void;
}

export class CodeField {
  readonly #view: EditorView;
  readonly #fixWord: string;

  constructor(parent: HTMLElement, options: CodeFieldOptions) {
    const { label, text, issueList, fixWord, coloursOf, completionsAt, onText, onEnter } = options;
    this.#fixWord = fixWord;
    const extensions = [
      history(),
      bracketMatching(),
      EditorView.lineWrapping,
      EditorView.cspNonce.of(pageNonce()),
      EditorView.contentAttributes.of({
        'aria-label': label,
        'aria-describedby': issueList,
        spellcheck: 'false',
      }),
      EditorView.decorations.compute(['doc'], ({ doc }) => colouredBy(coloursOf(doc.toString()))),
      autocompletion({
        override: completionSources(completionsAt),
        icons: false,
        // So many fit without a list that scrolls, which the keyboard could not reach.
        maxRenderedOptions: 12,
        interactionDelay: 0,
      }),
      replacesBySelf,
      // The Tab key leaves the field, as it leaves any other.
      keymap.of([...completionKeymap, ...enterKeymap(onEnter), ...historyKeymap, ...defaultKeymap]),
      EditorView.updateListener.of(({ docChanged, state }) => docChanged && onText(state.doc.toString())),
    ];
    this.#view = new EditorView({ parent, state: EditorState.create({ doc: text, extensions }) });
  }

  /** A text that comes from elsewhere, such as a fix. */
  set text(text: string) {
    const { doc } = this.#view.state;
    if (doc.toString() !== text) this.#view.dispatch({ changes: { from: 0, to: doc.length, insert: text } });
  }

  /** The issues of the text that is shown. */
  set issues(issues: readonly PolicyIssue[]) {
    const { length } = this.#view.state.doc;
    const marks = issues.map(({ severity, message, span, fix }): Diagnostic => {
      const actions = fix && [
        { name: this.#fixWord, apply: (view: EditorView) => view.dispatch({ changes: changeOf(fix) }) },
      ];
      const from = Math.min(span.start, length);
      return { from, to: Math.max(from, Math.min(span.end, length)), severity, message, ...(actions && { actions }) };
    });
    this.#view.dispatch(setDiagnostics(this.#view.state, marks));
  }

  /** Gives the keyboard to the end of the text. */
  focus(): void {
    this.#view.dispatch({ selection: { anchor: this.#view.state.doc.length } });
    this.#view.focus();
  }

  remove(): void {
    this.#view.destroy();
  }
}

/**
 * Typing over a selection. The browser would keep the style of the old text in a `style` attribute, which the policy of
 * the page forbids.
 */
const replacesBySelf = EditorView.domEventHandlers({
  beforeinput({ inputType, data }, view) {
    if (inputType !== 'insertText' || data === null || view.state.selection.main.empty) return false;
    view.dispatch(view.state.replaceSelection(data), { userEvent: 'input.type', scrollIntoView: true });
    return true;
  },
});

function enterKeymap(onEnter: CodeFieldOptions['onEnter']): readonly KeyBinding[] {
  if (onEnter === undefined) return [];
  const run = (): boolean => {
    onEnter();
    return true;
  };
  return [{ key: 'Enter', run }];
}

const changeOf = ({ span, replacement }: NonNullable<PolicyIssue['fix']>) => ({
  from: span.start,
  to: span.end,
  insert: replacement,
});

/** The page admits the style of the editor by the nonce of its script. */
const pageNonce = (): string => document.querySelector('script')?.nonce ?? '';

const colouredBy = (spans: readonly ColouredSpan[]): DecorationSet =>
  Decoration.set(spans.map(({ start, end, colour }) => Decoration.mark({ class: `code-${colour}` }).range(start, end)));

type CompletionsAt = CodeFieldOptions['completionsAt'];

/** A result replaces from one place: words at the cursor begin before it, signs after a whole word begin at it. */
const completionSources = (completionsAt: CompletionsAt): CompletionSource[] =>
  [0, 1].map((nth) => (context) => resultAt(completionsAt, context, nth));

const OPENS = /[@$.\w]$/;
const CONTINUES = /^[@$\w]*$/;

function resultAt(completionsAt: CompletionsAt, context: CompletionContext, nth: number): CompletionResult | null {
  const { state, pos, explicit } = context;
  const text = state.doc.toString();
  if (!explicit && !OPENS.test(text.slice(0, pos))) return null;
  const all = completionsAt(text, pos);
  const from = [...new Set(all.map(({ span }) => span.start))].toSorted((a, b) => a - b)[nth];
  if (from === undefined) return null;
  const options = all
    .filter(({ span }) => span.start === from)
    .map(({ text: label, type, doc, span }) => ({
      label,
      ...(type !== undefined && { detail: type }),
      ...(doc !== undefined && { info: doc }),
      apply: (view: EditorView, _: unknown, start: number, end: number) => {
        const to = Math.max(end, Math.min(span.end, view.state.doc.length));
        view.dispatch({ changes: { from: start, to, insert: label }, selection: { anchor: start + label.length } });
        if (label.endsWith('.')) startCompletion(view);
      },
    }));
  return { from, options, validFor: CONTINUES };
}
