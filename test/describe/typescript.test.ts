import { describe, expect, it } from 'vitest';
import { typescriptOf } from '../../src/describe/typescript.ts';
import { parseSchema } from '../../src/schema/load.ts';
import { SCHEMA } from './schema.ts';

describe('the TypeScript types', () => {
  it('types describe records, bodies and filters', () => {
    const text = typescriptOf(SCHEMA);
    const posts = text.slice(text.indexOf('export interface Post {'), text.indexOf('export interface Member {'));
    expect(posts).toBe(`export interface Post {
  id: Id;
  created_at: DateTime;
  updated_at: DateTime;
  title: string;
  state: "draft" | "live";
  score: number | null;
  owner: Id;
  expand?: { owner?: User | null; tags?: Member[]; tags_count?: number };
  expand_more?: ("tags")[];
}

export interface PostCreate {
  title: string;
  state?: "draft" | "live";
  score?: number | null;
  owner?: Id;
  tags?: MemberChange;
}

export interface PostUpdate {
  title?: string;
  state?: "draft" | "live";
  score?: number | null;
  owner?: Id;
  tags?: MemberChange;
}

export interface PostFilters {
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
    const order = '"created_at" | "updated_at" | "email" | "email_verified"';
    expect(text).toContain(
      '  users: { record: User; written: User | IdOnly; create: never; update: UserUpdate; filters: UserFilters; expand: never; ' +
        `through: never; linked: never; sort: ${order}; folded: never; unique: never; ` +
        `group_by: ${order}; dated: "created_at" | "updated_at"; points: never };\n`,
    );
    const words = text.split('\n').find((line) => line.startsWith('  posts: { record: Post;'));
    expect(words).toMatch(
      / expand: "owner" \| "tags"; through: "owner"; linked: "owner\.id" [^;]*"owner\.email"[^;]*;/,
    );
    expect(words).toMatch(/ sort: [^;]*"title".*; group_by: .*"owner";/);
    expect(text).toContain('| "not_found"');
  });

  it('paths of json are names of orders and groups', () => {
    const text = 'collections:\n  parts:\n    fields: { meta: { type: json, paths: { size.w: int } }, at: point }\n';
    const { schema } = parseSchema(text);
    const [entry = ''] = typescriptOf(schema!).match(/ {2}parts: .*/) ?? [];
    const order = '"created_at" | "updated_at" | "meta.size.w"';
    expect(entry).toContain(
      `sort: ${order}; folded: never; unique: never; group_by: ${order}; dated: "created_at" | "updated_at"; points: "at"`,
    );
  });
});
