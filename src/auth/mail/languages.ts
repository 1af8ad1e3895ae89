/** Chooses the language of a mail among the languages of the application. */

/** `tag`: such as `de-CH`. */
export function languageAmong(languages: readonly string[], tag: string): string | undefined {
  const wanted = tag.toLowerCase().replaceAll('_', '-');
  const find = (text: string) => languages.find((each) => each.toLowerCase() === text);
  return find(wanted) ?? find(wanted.split('-')[0]!);
}

/** The first language of the header that the application has (RFC 9110, 12.5.4). */
export function preferredLanguage(languages: readonly string[], header: string | undefined): string | undefined {
  const ranges = (header ?? '').split(',', 20).map((part) => {
    const [tag = '', ...parameters] = part.split(';').map((each) => each.trim());
    const weight = parameters.find((each) => each.startsWith('q='))?.slice('q='.length) ?? '';
    return { tag, weight: weight === '' ? 1 : Number(weight) || 0 };
  });
  const wanted = ranges.filter(({ weight }) => weight > 0).toSorted((one, other) => other.weight - one.weight);
  for (const { tag } of wanted) {
    const found = languageAmong(languages, tag);
    if (found !== undefined) return found;
  }
  return undefined;
}
