import { describe, expect, it } from 'vitest';
import { typescriptOf } from '../../src/describe/typescript.ts';
import { SCHEMA } from './schema.ts';

describe('the TypeScript types', () => {
  it('are those of records, of bodies and of filters', () => {
    const text = typescriptOf(SCHEMA);
    const posts = text.slice(text.indexOf('export interface Posts {'), text.indexOf('export interface Members {'));
    expect(posts).toBe(`export interface Posts {
  id: Id;
  created_at: DateTime;
  updated_at: DateTime;
  title: string;
  state: "draft" | "live";
  score: number | null;
  owner: Id;
  expand?: { owner?: Users | null; tags?: Members[] };
  expand_more?: ("tags")[];
}

export interface PostsCreate {
  title: string;
  state?: "draft" | "live";
  score?: number | null;
  owner?: Id;
  tags?: MemberChange;
}

export interface PostsUpdate {
  title?: string;
  state?: "draft" | "live";
  score?: number | null;
  owner?: Id;
  tags?: MemberChange;
}

export interface PostsFilters {
  id?: Id;
  created_at?: DateTime;
  updated_at?: DateTime;
  title?: string;
  state?: "draft" | "live";
  score?: number;
  owner?: Id;
  owner_id?: Id;
  tags_any?: Id;
}

`);
    expect(text).toContain(
      '  users: { record: Users; written: Users | IdOnly; create: never; update: UsersUpdate; filters: UsersFilters };\n',
    );
  });
});
