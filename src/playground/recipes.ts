/** Examples to begin with. */
interface Recipe {
  readonly title: string;
  readonly schema: string;
  readonly world: string;
  readonly collection: string;
}

const OWNED: Recipe = {
  title: 'Drafts and published posts',
  collection: 'posts',
  schema: `roles: [admin, member]
register: { roles: [member] }
guests: true
collections:
  posts:
    fields:
      title: { type: string, required: true, max: 200 }
      status: { type: string, required: true, enum: [draft, published], default: draft }
    relations:
      author: { kind: belongs_to, collection: users, required: true, default: '@request.auth.id' }
    access:
      view: '@record.status = "published" or @record.author = @request.auth.id'
      create: [{ roles: [member], when: '@record.author = @request.auth.id' }]
      update: '@record.author = @request.auth.id'
      delete: [{ roles: [admin] }, { when: '@record.author = @request.auth.id and @record.status = "draft"' }]
`,
  world: `callers:
  ada: { roles: [member] }
  ben: { roles: [member] }
  root: { roles: [admin] }
rows:
  posts:
    draft: { title: A draft, author: ada }
    news: { title: The news, author: ada, status: published }
`,
};

const TEAMS: Recipe = {
  title: 'Teams with members',
  collection: 'documents',
  schema: `roles: [member]
register: { roles: [member] }
collections:
  teams:
    fields: { name: { type: string, required: true } }
    relations: { memberships: { kind: has_many, collection: memberships, via: team } }
    access: { view: 'any(@record.memberships as m, m.user = @request.auth.id)' }
  memberships:
    fields: { role: { type: string, required: true, enum: [editor, reader], default: reader } }
    relations:
      team: { kind: belongs_to, collection: teams, required: true, on_delete: cascade }
      user: { kind: belongs_to, collection: users, required: true, on_delete: cascade }
    access: { view: '@record.user = @request.auth.id' }
  documents:
    fields: { title: { type: string, required: true } }
    relations: { team: { kind: belongs_to, collection: teams, required: true } }
    access:
      view: 'any(@record.team.memberships as m, m.user = @request.auth.id)'
      update: 'any(@record.team.memberships as m, m.user = @request.auth.id and m.role = "editor")'
`,
  world: `callers:
  ada: { roles: [member] }
  ben: { roles: [member] }
  cleo: { roles: [member] }
rows:
  teams: { red: { name: Red } }
  memberships:
    one: { team: red, user: ada, role: editor }
    two: { team: red, user: ben }
  documents:
    plan: { title: The plan, team: red }
`,
};

export const RECIPES: readonly Recipe[] = [OWNED, TEAMS];
