/** Text into HTML, also into attributes in double quotes. Not a route. */

const HTML_ESCAPES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};

export const html = (value: string): string => value.replaceAll(/[&<>"']/g, (character) => HTML_ESCAPES[character]!);
