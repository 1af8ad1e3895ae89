import type { JSX } from 'preact';

export function TableHead({ titles }: { readonly titles: readonly string[] }): JSX.Element {
  return (
    <thead>
      <tr>
        {titles.map((title) => (
          <th key={title} scope="col">
            {title}
          </th>
        ))}
      </tr>
    </thead>
  );
}
