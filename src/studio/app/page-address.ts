/** The address of the page: `/studio/PAGE/SUBJECT?…`. It holds all that a link must show again. */
import { signal } from '@preact/signals';

/** The service may serve the studio elsewhere. */
export const ROOT = document.getElementById('studio')?.dataset.root ?? '/studio';

export interface PageAddress {
  readonly page: string;
  readonly subject: string | undefined;
  readonly query: URLSearchParams;
}

function readAddress(): PageAddress {
  const [page = '', subject] = location.pathname.slice(ROOT.length + 1).split('/');
  return {
    page,
    subject: subject === undefined || subject === '' ? undefined : decodeURIComponent(subject),
    query: new URLSearchParams(location.search),
  };
}

export const address = signal(readAddress());

/** The key of the caller whom pages show; links inside the studio keep it. */
export const VIEWED_KEY = 'view';

export type PageQuery = Readonly<Record<string, string | undefined>>;

export function pathTo(page: string, subject?: string, query: PageQuery = {}): string {
  const search = new URLSearchParams();
  const viewed = address.peek().query.get(VIEWED_KEY) ?? undefined;
  for (const [key, value] of Object.entries({
    ...query,
    [VIEWED_KEY]: VIEWED_KEY in query ? query[VIEWED_KEY] : viewed,
  }))
    if (value) search.set(key, value);
  const path = `${ROOT}/${page}${subject === undefined ? '' : `/${encodeURIComponent(subject)}`}`;
  return search.size === 0 ? path : `${path}?${search}`;
}

export function goTo(path: string, how: 'push' | 'replace' = 'push'): void {
  if (how === 'push') history.pushState(null, '', path);
  else history.replaceState(null, '', path);
  address.value = readAddress();
}

/** The page with some other keys in its query. An empty value removes its key. */
export function changedPath(changes: PageQuery): string {
  const { page, subject, query } = address.peek();
  return pathTo(page, subject, { ...Object.fromEntries(query), ...changes });
}

/** Changes some keys of the query, and stays on the page. */
export const changeQuery = (changes: PageQuery, how?: 'push' | 'replace'): void => goTo(changedPath(changes), how);

/** Links inside the studio change the page without loading it anew. */
export function watchAddress(): void {
  addEventListener('popstate', () => {
    address.value = readAddress();
  });
  addEventListener('click', (event) => {
    if (event.defaultPrevented || event.button !== 0 || event.ctrlKey || event.metaKey || event.shiftKey) return;
    const link = event.target instanceof Element ? event.target.closest('a') : null;
    if (link === null || link.target !== '' || link.origin !== location.origin) return;
    if (link.pathname !== ROOT && !link.pathname.startsWith(`${ROOT}/`)) return;
    // The browser follows a link to a part of the open page, and moves the focus there.
    if (link.hash !== '' && link.pathname + link.search === location.pathname + location.search) return;
    event.preventDefault();
    goTo(link.pathname + link.search);
  });
}
