/** A form that sends a request with the session of the page, and shows its answer and the rule that decided it. */
import type { JSX } from 'preact';
import { useState } from 'preact/hooks';
import { hasEnded } from '../../app/session-state.ts';
import { useTabDraft } from '../../app/tab-drafts.ts';
import { greyReason } from '../../app/viewed-caller.ts';
import { askWhy, type WhyExplanation, type WhyQuestion } from '../../data/why-question.ts';
import { wording } from '../../en.ts';
import { copyText } from '../../parts/copy-text.ts';
import { greyed } from '../../parts/greyed.ts';
import { ExplanationView } from '../why/explanation-view.tsx';
import type { ApiOperation, ApiParameter } from './operation-list.ts';
import {
  type ConsoleRequest,
  clientLineOf,
  curlLineOf,
  decisionQuestion,
  exampleOf,
  isUpload,
  requestHeadersOf,
  requestPathOf,
} from './request-lines.ts';

interface ConsoleAnswer {
  readonly status: string;
  readonly isGood: boolean;
  readonly headers: string;
  readonly content: string;
}
interface RequestDecision {
  readonly question: WhyQuestion;
  readonly explanation: WhyExplanation;
}

const NO_PARAMETERS: ConsoleRequest['values'] = {};

/** The draft of the form; requests of the sign-in, which have passwords, have none. */
const draftNameOf = ({ method, path }: ApiOperation, part: string): string | undefined =>
  path.includes('/auth/') ? undefined : `console:${method} ${path} ${part}`;

export function RequestConsole({ operation }: { readonly operation: ApiOperation }): JSX.Element {
  const { parameters = [] } = operation;
  const [values, setValues] = useTabDraft(draftNameOf(operation, 'values'), NO_PARAMETERS);
  const [body, setBody] = useTabDraft(draftNameOf(operation, 'body'), exampleOf(operation));
  const [file, setFile] = useState<File>();
  const [isSending, setSending] = useState(false);
  const [answer, setAnswer] = useState<ConsoleAnswer>();
  const [decision, setDecision] = useState<RequestDecision>();
  const request: ConsoleRequest = { operation, values, body, file };
  const send = async (): Promise<void> => {
    setSending(true);
    setAnswer(undefined);
    setDecision(undefined);
    // Before the request: a deleted record has no explanation.
    setDecision(await askDecision(request));
    setAnswer(await sendRequest(request));
    setSending(false);
  };
  return (
    <section class="console" aria-label={wording.console}>
      <h2>{wording.console}</h2>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          void send();
        }}
      >
        {parameters.map((parameter) => (
          <ParameterField
            key={`${parameter.in} ${parameter.name}`}
            parameter={parameter}
            value={values[`${parameter.in} ${parameter.name}`] ?? ''}
            onValue={(value) => setValues({ ...values, [`${parameter.in} ${parameter.name}`]: value })}
          />
        ))}
        {isUpload(operation) && (
          <label>
            {wording.files}
            <input type="file" required onChange={(event) => setFile(event.currentTarget.files?.[0])} />
          </label>
        )}
        {body !== undefined && <BodyField body={body} onBody={setBody} />}
        <SendButton isSending={isSending} isWriting={isWrite(operation)} />
      </form>
      <RequestLine shortcut="c" title="curl" text={curlLineOf(request)} />
      <RequestLine shortcut="l" title={wording.clientLine} text={clientLineOf(request)} />
      {answer !== undefined && <AnswerView answer={answer} />}
      {answer !== undefined && decisionQuestion(request) !== undefined && <DecidingRuleLine decision={decision} />}
    </section>
  );
}

interface SendButtonProps {
  readonly isSending: boolean;
  readonly isWriting: boolean;
}

function SendButton({ isSending, isWriting }: SendButtonProps): JSX.Element {
  return (
    <button
      type="submit"
      class="primary"
      aria-keyshortcuts="Control+Enter"
      disabled={isSending}
      {...greyed(isWriting ? greyReason.value : undefined)}
    >
      {isSending ? wording.sending : wording.sendRequest}
    </button>
  );
}

/** Some reads send a body, so their method is POST. */
const isWrite = ({ method, path }: ApiOperation): boolean =>
  method !== 'GET' && method !== 'HEAD' && !/\/(?:query|aggregate|can|_explain|_matrix|_diff)$/.test(path);

interface BodyFieldProps {
  readonly body: string;
  readonly onBody: (body: string) => void;
}

function BodyField({ body, onBody }: BodyFieldProps): JSX.Element {
  return (
    <label>
      {wording.body}
      <textarea
        name="body"
        class="file-text"
        rows={Math.min(14, body.split('\n').length + 1)}
        spellcheck={false}
        value={body}
        onInput={(event) => onBody(event.currentTarget.value)}
      />
    </label>
  );
}

function DecidingRuleLine({ decision }: { readonly decision: RequestDecision | undefined }): JSX.Element {
  return (
    <>
      <h3>{wording.decidedBy}</h3>
      {decision === undefined ? (
        <p class="hint">{wording.decisionWithheld}</p>
      ) : (
        <ExplanationView question={decision.question} explanation={decision.explanation} />
      )}
    </>
  );
}

/** Undefined where no rule decides, and where the caller may not ask. */
async function askDecision(request: ConsoleRequest): Promise<RequestDecision | undefined> {
  const asked = decisionQuestion(request);
  if (asked === undefined) return undefined;
  try {
    return { question: asked.question, explanation: await askWhy(asked.question, asked.more) };
  } catch {
    return undefined;
  }
}

/** A longer answer is cut. */
const LONGEST_ANSWER = 100_000;

async function sendRequest(request: ConsoleRequest): Promise<ConsoleAnswer> {
  const { operation, body, file } = request;
  const form = new FormData();
  if (file !== undefined) form.append('file', file);
  try {
    const began = performance.now();
    const response = await fetch(requestPathOf(request), {
      method: operation.method,
      headers: requestHeadersOf(request),
      body: isUpload(operation) ? form : body,
      credentials: 'same-origin',
    });
    if (response.status === 401) hasEnded.value = true;
    const type = response.headers.get('content-type') ?? '';
    const isText = /^text\/|\bjson\b/.test(type);
    const text = isText ? await answerText(response, type) : '';
    const took = Math.round(performance.now() - began);
    return {
      status: `${response.status} ${response.statusText} · ${took} ms`,
      isGood: response.ok,
      headers: [...response.headers].map(([name, value]) => `${name}: ${value}`).join('\n'),
      content: isText ? readableText(text, type) : type,
    };
  } catch {
    return { status: wording.offline, isGood: false, headers: '', content: '' };
  }
}

/** A stream of events does not end: its first part is shown. */
async function answerText(response: Response, type: string): Promise<string> {
  if (!type.startsWith('text/event-stream') || response.body === null) return response.text();
  const reader = response.body.getReader();
  const { value } = await reader.read();
  await reader.cancel();
  return new TextDecoder().decode(value);
}

function readableText(text: string, type: string): string {
  const shown = /\bjson\b/.test(type) && text !== '' ? JSON.stringify(JSON.parse(text), null, 2) : text;
  return shown.length > LONGEST_ANSWER ? `${shown.slice(0, LONGEST_ANSWER)}…` : shown;
}

interface ParameterFieldProps {
  readonly parameter: ApiParameter;
  readonly value: string;
  readonly onValue: (value: string) => void;
}

function ParameterField({ parameter, value, onValue }: ParameterFieldProps): JSX.Element {
  const { name, in: place, required = false, schema } = parameter;
  const choices = place === 'path' ? schema?.enum : undefined;
  return (
    // biome-ignore lint/a11y/noLabelWithoutControl: one of two controls follows
    <label>
      {`${name} (${place})`}
      {required && <span class="required"> {wording.required}</span>}
      {choices === undefined ? (
        <input
          name={name}
          required={required}
          spellcheck={false}
          value={value}
          onInput={(event) => onValue(event.currentTarget.value)}
        />
      ) : (
        <select name={name} required={required} value={value} onChange={(event) => onValue(event.currentTarget.value)}>
          <option value="" />
          {choices.map((each) => (
            <option key={String(each)}>{String(each)}</option>
          ))}
        </select>
      )}
    </label>
  );
}

interface RequestLineProps {
  readonly title: string;
  /** The key that copies it. */
  readonly shortcut: string;
  readonly text: string;
}

function RequestLine({ title, shortcut, text }: RequestLineProps): JSX.Element {
  return (
    <div class="request-line">
      <h3>{title}</h3>
      <button
        type="button"
        class="link"
        aria-label={`${wording.copy}: ${title}`}
        aria-keyshortcuts={shortcut}
        onClick={() => void copyText(text)}
      >
        {wording.copy}
      </button>
      <pre tabIndex={0}>{text}</pre>
    </div>
  );
}

function AnswerView({ answer: { status, isGood, headers, content } }: { readonly answer: ConsoleAnswer }): JSX.Element {
  return (
    <div class="console-answer">
      <h3>{wording.answer}</h3>
      <p class={`verdict ${isGood ? 'allowed' : 'refused'}`} role="status">
        <strong>{status}</strong>
      </p>
      {headers !== '' && (
        <details>
          <summary>{wording.headers}</summary>
          <pre tabIndex={0}>{headers}</pre>
        </details>
      )}
      {content !== '' && <pre tabIndex={0}>{content}</pre>}
    </div>
  );
}
