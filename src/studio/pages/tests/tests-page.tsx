/** Policy tests: a text, or files that are dropped or chosen; run in the page, and under `bylaw dev` by SQL too. */
import type { JSX } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { noteProblem, schema } from '../../app/session-state.ts';
import { useTabDraft } from '../../app/tab-drafts.ts';
import type { ShownProblem } from '../../data/problem-words.ts';
import { wording } from '../../en.ts';
import { FileDrop } from '../../parts/file-drop.tsx';
import { ProblemNote } from '../../parts/problem-note.tsx';
import { fetchProjectTests, runOnService, type TestAnswer, TestTextErrors, testsHere } from './test-answer.ts';
import { TestResults } from './test-results.tsx';

const TESTS_DRAFT = 'policy-tests';
const FIRST_TESTS = `rows:
  COLLECTION:
    one: {}
tests:
  - COLLECTION: one
    guest: none
`;

interface TestFiles {
  readonly [name: string]: string;
}

function firstFiles(): TestFiles {
  const first = schema.value?.collections.find(({ kind }) => kind === 'plain')?.name ?? 'users';
  return { 'bylaw.policy.yaml': FIRST_TESTS.replaceAll('COLLECTION', first) };
}

/** The files of the project under `bylaw dev`; without any, an example. */
async function projectFiles(): Promise<TestFiles> {
  const found = hasDatabase() ? await fetchProjectTests() : {};
  return Object.keys(found).length === 0 ? firstFiles() : found;
}

interface EditedFiles {
  /** Undefined while they load. */
  readonly files: TestFiles | undefined;
  readonly change: (changed: TestFiles) => void;
  readonly reload: () => void;
  readonly loadProblem: ShownProblem | undefined;
}

/** The edited files, which outlive the page, else those of the project. */
function useTestFiles(): EditedFiles {
  const [files, change] = useTabDraft<TestFiles | undefined>(TESTS_DRAFT, undefined);
  const [loadProblem, setProblem] = useState<ShownProblem>();
  const reload = (): void => {
    setProblem(undefined);
    projectFiles().then(change, (error) => setProblem(noteProblem(error)));
  };
  useEffect(() => {
    if (files === undefined) reload();
  }, []);
  return { files, change, reload, loadProblem };
}

interface RunOfTests {
  readonly answer: TestAnswer | undefined;
  readonly problem: ShownProblem | undefined;
  readonly isRunning: boolean;
  readonly run: (mutate: boolean) => Promise<void>;
}

function useTestRun(files: TestFiles): RunOfTests {
  const [answer, setAnswer] = useState<TestAnswer>();
  const [problem, setProblem] = useState<ShownProblem>();
  const [isRunning, setRunning] = useState(false);
  const run = async (mutate: boolean): Promise<void> => {
    setRunning(true);
    setProblem(undefined);
    try {
      const asked = { files, mutate };
      setAnswer(hasDatabase() ? await runOnService(asked) : await testsHere(schema.value?.text ?? '', asked));
    } catch (error) {
      setAnswer(undefined);
      setProblem(testProblem(error));
    } finally {
      setRunning(false);
    }
  };
  return { answer, problem, isRunning, run };
}

export function TestsPage(): JSX.Element {
  const { files = {}, change, reload, loadProblem } = useTestFiles();
  const { answer, problem, isRunning, run } = useTestRun(files);
  const schemaText = schema.value?.text;
  const canRun = (hasDatabase() || schemaText !== undefined) && !isRunning && Object.keys(files).length > 0;
  return (
    <main id="content" class="page" tabIndex={-1}>
      <h1>{wording.tests}</h1>
      <p class="hint">{runHint()}</p>
      {loadProblem !== undefined && <ProblemNote problem={loadProblem} onRetry={reload} />}
      <FileDrop
        words={wording.dropTests}
        accept=".yaml,.yml"
        onFiles={(dropped) => void textsOf(dropped).then((more) => change({ ...files, ...more }))}
      />
      {Object.entries(files).map(([name, text]) => (
        <FileText
          key={name}
          name={name}
          text={text}
          onText={(changed) => change({ ...files, [name]: changed })}
          onRemove={() => change(Object.fromEntries(Object.entries(files).filter(([other]) => other !== name)))}
        />
      ))}
      <RunActions {...{ canRun, isRunning, run, reload }} />
      {problem !== undefined && <ProblemNote problem={problem} />}
      {answer !== undefined && (
        <TestResults
          answer={answer}
          schemaText={schemaText}
          onAdd={(text) => change({ ...files, [freeFileName(files)]: text })}
        />
      )}
    </main>
  );
}

interface RunActionsProps extends Pick<RunOfTests, 'isRunning' | 'run'>, Pick<EditedFiles, 'reload'> {
  readonly canRun: boolean;
}

function RunActions({ canRun, isRunning, run, reload }: RunActionsProps): JSX.Element {
  return (
    <div class="actions">
      <button
        type="button"
        class="primary"
        aria-keyshortcuts="Control+Enter"
        disabled={!canRun}
        onClick={() => void run(false)}
      >
        {isRunning ? wording.running : wording.runTests}
      </button>
      <button
        type="button"
        aria-keyshortcuts="m"
        disabled={!canRun}
        title={wording.mutateHint}
        onClick={() => void run(true)}
      >
        {wording.runMutants}
      </button>
      {hasDatabase() && (
        <button type="button" aria-keyshortcuts="Shift+r" onClick={reload}>
          {wording.reloadTests}
        </button>
      )}
    </div>
  );
}

const hasDatabase = (): boolean => schema.value?.can_save === true;

function runHint(): string {
  if (hasDatabase()) return wording.testsHint;
  return schema.value?.text === undefined ? wording.testsOfSecret : wording.testsElsewhere;
}

function testProblem(error: unknown): ShownProblem {
  if (!(error instanceof TestTextErrors)) return noteProblem(error);
  return { text: wording.textErrors, fields: {}, others: error.errors, status: undefined, requestId: undefined };
}

/** A name that no file of the page has. */
function freeFileName(files: TestFiles): string {
  let number = 1;
  while (Object.hasOwn(files, `mutant-${number}.policy.yaml`)) number++;
  return `mutant-${number}.policy.yaml`;
}

async function textsOf(files: readonly File[]): Promise<TestFiles> {
  const read = files.map(async (file) => [file.name, await file.text()] as const);
  return Object.fromEntries(await Promise.all(read));
}

interface FileTextProps {
  readonly name: string;
  readonly text: string;
  readonly onText: (text: string) => void;
  readonly onRemove: () => void;
}

function FileText({ name, text, onText, onRemove }: FileTextProps): JSX.Element {
  return (
    <div class="test-file" role="group" aria-label={name}>
      <label>
        {name}
        <textarea
          class="file-text"
          rows={10}
          spellcheck={false}
          value={text}
          onInput={(event) => onText(event.currentTarget.value)}
        />
      </label>
      <button type="button" aria-label={`${wording.removeFile} ${name}`} aria-keyshortcuts="d" onClick={onRemove}>
        {wording.removeFile}
      </button>
    </div>
  );
}
