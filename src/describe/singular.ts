/**
 * English plurals, as far as names of collections need them. A word that no rule knows for a plural
 * stays as it is.
 */

const IRREGULAR: ReadonlyMap<string, string> = new Map(
  Object.entries({
    people: 'person',
    children: 'child',
    men: 'man',
    women: 'woman',
    feet: 'foot',
    teeth: 'tooth',
    geese: 'goose',
    mice: 'mouse',
    criteria: 'criterion',
    phenomena: 'phenomenon',
    indices: 'index',
    matrices: 'matrix',
    vertices: 'vertex',
    appendices: 'appendix',
    quizzes: 'quiz',
    aliases: 'alias',
    atlases: 'atlas',
    biases: 'bias',
    canvases: 'canvas',
    gases: 'gas',
    lenses: 'lens',
    axes: 'axis',
    analyses: 'analysis',
    crises: 'crisis',
    diagnoses: 'diagnosis',
    hypotheses: 'hypothesis',
    parentheses: 'parenthesis',
    syntheses: 'synthesis',
    theses: 'thesis',
    calves: 'calf',
    halves: 'half',
    knives: 'knife',
    leaves: 'leaf',
    lives: 'life',
    shelves: 'shelf',
    thieves: 'thief',
    wives: 'wife',
    wolves: 'wolf',
  }),
);

/** Words that look like plurals, or are their own. */
const UNCHANGED: ReadonlySet<string> = new Set(
  'alias atlas bias canvas gas lens news series species dns sms tls'.split(' '),
);

/** The first ending that fits counts; the capture is what stays. */
const ENDINGS: readonly (readonly [ending: RegExp, replacement: string])[] = [
  [/^(calorie|cookie|die|genie|lie|movie|pie|rookie|selfie|tie|zombie)s$/, '$1'],
  [/(.)ies$/, '$1y'],
  [/(cache|headache|niche|avalanche|shoe|canoe|toe|axe)s$/, '$1'],
  [/(ch|sh|ss|x|zz)es$/, '$1'],
  [/((?:[ao]|exc|ref|^|f|m)use)s$/, '$1'],
  [/(us)es$/, '$1'],
  [/([^o]o)es$/, '$1'],
  [/(ss|us|is)$/, '$1'],
  [/(.)s$/, '$1'],
];

/** The singular of a lower-case word: `memberships` → `membership`, `people` → `person`. */
export function singularOf(word: string): string {
  if (UNCHANGED.has(word)) return word;
  const irregular = IRREGULAR.get(word);
  if (irregular !== undefined) return irregular;
  const rule = ENDINGS.find(([ending]) => ending.test(word));
  return rule === undefined ? word : word.replace(rule[0], rule[1]);
}
