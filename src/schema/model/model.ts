/**
 * The schema as the program knows it: checked, with every default filled in. Satisfies the policy
 * room's `Catalog`.
 */
import type {
  Action,
  CatalogBelongsTo,
  CatalogCollection,
  CatalogField,
  CatalogKey,
  CatalogManyToMany,
  HasMany,
  HasOne,
  Policy,
  RuledAction,
  ScalarType,
} from '../../policy/types.ts';
import type { FieldKind } from '../fields/kind.ts';
import { LIST_WORDS } from './list-parameters.ts';

/** `id`: a domain. */
interface PasskeyOptions {
  readonly id: string | undefined;
  readonly name: string | undefined;
  readonly origins: readonly string[] | undefined;
}

/** The session cookie. `domain`: its hosts get the cookie; by default, that of the base URL alone does. */
export interface CookieOptions {
  readonly sameSite: 'lax' | 'none';
  readonly domain: string | undefined;
}

/** The pages for people. `origins`: elsewhere they are not found; undefined: each origin has them. */
export interface StudioOptions {
  readonly path: string;
  readonly origins: readonly string[] | undefined;
}

export interface Schema {
  /** The path as given, for messages. */
  readonly file: string;
  /** The text of the file. */
  readonly text: string;
  readonly roles: ReadonlyMap<string, Role>;
  readonly register: Register;
  /** Callers who are not signed in are admitted, with the role `guest` alone. */
  readonly guests: boolean;
  /** The roles that a session has only with a second factor: those of the file, and each that includes one of them. */
  readonly secondFactorRoles: ReadonlySet<string>;
  /** The site of passkeys; members that are left out follow from the base URL. */
  readonly passkeys: PasskeyOptions;
  /** The collections are in the order of the file, and always include `users` and `files`. */
  readonly collections: ReadonlyMap<string, Collection>;
  readonly oauth: ReadonlyMap<string, OAuthProvider>;
  /** Seconds. */
  readonly sessions: { readonly access: number; readonly refresh: number; readonly idle: number };
  readonly mail: MailOptions;
  /** Seconds; without it, for ever. */
  readonly audit: { readonly keep?: number };
  readonly limits: Limits;
  readonly uploads: Uploads;
  /** The time zone of `@today`, as IANA names it. */
  readonly timezone: string;
  /** Exact origins (`https://app.example`). */
  readonly origins: readonly string[];
  readonly cookie: CookieOptions;
  readonly studio: StudioOptions;
  /** The beginnings of the addresses of native apps. */
  readonly redirects: readonly string[];
  /** Addresses or CIDR ranges whose X-Forwarded-For counts. */
  readonly proxies: readonly string[];
  /** `bylaw prove` decides them; no request reads them. */
  readonly statements: readonly Statement[];
  /** The records that `bylaw dev` starts with. */
  readonly seed?: Seed | undefined;
  readonly webhooks: ReadonlyMap<string, Webhook>;
}

export interface Seed {
  /** Relative to the file of the schema. */
  readonly folder: string;
  /** The forms of files, by their names in the folder. */
  readonly files: ReadonlyMap<string, SeedForm>;
}
/** The flags of an import. */
export interface SeedForm {
  /** The unique fields by which the file names records, by relation. */
  readonly references: ReadonlyMap<string, string>;
  /** The fields by their names in the file; an empty one leaves the values out. */
  readonly names: ReadonlyMap<string, string>;
  readonly nullText?: string | undefined;
  readonly dateFormat?: string | undefined;
  readonly delimiter?: string | undefined;
  readonly encoding?: string | undefined;
}

export const WEBHOOK_EVENTS = ['enter', 'change', 'leave'] as const;
/** An address that is sent the changes of records that an API key may list. */
export interface Webhook {
  readonly name: string;
  readonly collection: string;
  readonly url: string;
  readonly events: readonly (typeof WEBHOOK_EVENTS)[number][];
  /** Over the record alone. */
  readonly filter?: string | undefined;
  /** The id of an API key, or the name of one that the command line made. */
  readonly as: string;
  /** Each signs every message: `whsec_` and base64. */
  readonly secrets: readonly string[];
}

export interface MailOptions {
  /** Undefined: MAIL_FROM, or no-reply@ the host of the base URL. */
  readonly from: string | undefined;
  /** The name of the application in mails. Undefined: the host of the base URL. */
  readonly appName: string | undefined;
  readonly replyTo: string | undefined;
  /** A path, or an https address: the picture on the pages of accounts. */
  readonly logo: string | undefined;
  /** Languages of mails; the first is the default. */
  readonly languages: readonly string[];
  /** The folder of templates, relative to the file. */
  readonly templates: string | undefined;
  /** A sign-in from an unknown address and device is mailed to its user. */
  readonly notices: boolean;
  /** Codes and links that sign in are mailed on request. */
  readonly otp: boolean;
  /** With `{token}` in the place of the token. */
  readonly urls: Readonly<Record<MailUrl, string | undefined>>;
}

export type MailUrl = 'verify_url' | 'reset_url' | 'invite_url' | 'login_url' | 'email_change_url';

interface Register {
  readonly roles: readonly string[];
  /** False: an admin adds users. */
  readonly open: boolean;
  /** A login needs a verified address. */
  readonly verify: boolean;
}

/** The callers of a statement. A role is exactly it and what it includes. */
export type Who =
  | { readonly kind: 'guest' | 'anyone' | 'user' }
  | { readonly kind: 'role'; readonly role: string; readonly without?: string };
/** `never: guest can read documents where …`. */
export interface Statement {
  readonly kind: 'never' | 'always';
  readonly text: string;
  readonly why?: string | undefined;
  readonly line: number;
  readonly column: number;
  readonly who: Who;
  readonly collection: string;
  /** Given for `read documents.salary`. */
  readonly member?: string | undefined;
  /** Each action, with the condition after `where`. */
  readonly asked: readonly { readonly action: RuledAction; readonly where?: Policy | undefined }[];
  /** Given for `who can update documents can read them`: the second actions. */
  readonly implied?: readonly Action[] | undefined;
}

export interface Role {
  readonly name: string;
  readonly assigns: readonly string[];
  /** Transitively closed, without itself. */
  readonly includes: readonly string[];
}

export interface Collection extends CatalogCollection {
  readonly key?: Key;
  readonly kind: 'plain' | 'users' | 'files';
  readonly fields: ReadonlyMap<string, Field>;
  readonly relations: ReadonlyMap<string, Relation>;
  /** The union of rules of each action; an empty list denies everyone. */
  readonly access: Readonly<Record<Action, readonly Policy[]>>;
  /** The rules of fields and belongs_to, by name. */
  readonly memberAccess: ReadonlyMap<string, MemberAccess>;
  /** In the order of the file. */
  readonly checks: readonly Check[];
  /** Null: its table is on one machine. */
  readonly tenantLayout: TenantLayout | null;
  /** False: another program owns the table, which no migration changes. */
  readonly managed: boolean;
  /** Each row has the number of its changes, and has its references as ids. */
  readonly countsChanges: boolean;
  /** The writes that the database takes from the service; undefined: all. */
  readonly writes?: Readonly<Record<'create' | 'update' | 'delete', boolean>>;
  /** PostgreSQL cannot lock the rows of the view, such as of an outer join. */
  readonly hasNoRowLocks?: boolean;
  /** The messages of errors that triggers raise reach callers. */
  readonly showsErrors: boolean;
  /** The collection has a feed of its changes. */
  readonly feed?: ChangeFeed;
  readonly noOverlap?: readonly NoOverlap[];
  /** The changes of its records are kept. */
  readonly history?: RecordHistory;
  /** Deleted records are kept, and can be brought back. */
  readonly softDelete?: SoftDelete;
  /** The string field that names a record to people; null: it has none. */
  readonly title: string | null;
  /** The former name. */
  readonly was?: string;
}

/** Records of the same `on` do not overlap between `from`, included, and `to`, excluded; without an end, for ever. */
export interface NoOverlap {
  readonly on: readonly (Field | BelongsTo)[];
  readonly from: Field;
  readonly to: Field;
  readonly where?: Policy;
}
/** The types of `from` and `to`, with the function of PostgreSQL that makes a range of them. */
export const PERIOD_RANGES: ReadonlyMap<ScalarType, string> = new Map([
  ['datetime', 'tstzrange'],
  ['date', 'daterange'],
  ['int', 'int8range'],
  ['bigint', 'int8range'],
]);
export interface RecordHistory {
  /** Seconds; without it, for ever. */
  readonly keep?: number;
  /** The table of the entries, of a collection that is divided by tenant. Default: the one that collections share. */
  readonly table?: string;
}

export interface SoftDelete {
  /** The table that keeps the deleted records. */
  readonly table: string;
  /** The rules for finding deleted records and bringing them back, over the record as it was deleted. */
  readonly restore: readonly Policy[];
}

export interface ChangeFeed {
  /** Seconds for which a subscriber can resume. */
  readonly retention: number;
}

/** False: the database does not take the write, though a rule may allow it. */
export const takesWrite = ({ writes }: Pick<Collection, 'writes'>, action: Action): boolean =>
  writes === undefined || action === 'list' || action === 'read' || writes[action];

/** Keys of a collection that some routes need. */
export type Feature = 'feed' | 'history' | 'softDelete';
interface Offer {
  readonly action: Action;
  readonly kind?: Collection['kind'];
  readonly needs?: Feature;
}
/** The collection has the routes with such a door. */
export const offers = (collection: Collection, { action, kind, needs }: Offer): boolean =>
  (collection.writes === undefined || takesWrite(collection, action)) &&
  (kind === undefined || kind === collection.kind) &&
  (needs === undefined || collection[needs] !== undefined);

/** The maker of the ids of new records: the service (uuids alone), the database, or the caller who creates a record. */
export type KeyMaker = 'service' | 'database' | 'caller';
export interface Key extends CatalogKey {
  readonly madeBy: KeyMaker;
  /** Given for a key of several columns, in their order. */
  readonly parts?: readonly KeyPart[];
}
export interface KeyPart extends Pick<CatalogField, 'readAs'> {
  readonly column: string;
  readonly kind: FieldKind;
}
export const madeBy = ({ key }: Pick<Collection, 'key'>): KeyMaker => key?.madeBy ?? 'service';
export const madeByDatabase = (collection: Pick<Collection, 'key'>): boolean => madeBy(collection) === 'database';

/** The place of a collection's rows: all of them on every machine, or each with those of its tenant. */
export type TenantLayout = { readonly kind: 'reference' } | TenantKey;
export interface TenantKey {
  readonly kind: 'by';
  /** A required belongs_to to a reference collection: the tenant. It never changes. */
  readonly by: string;
  /** The column of that relation. */
  readonly column: string;
  /** `routed`: every rule requires one tenant. `filtered`: a list has a filter on the tenant. */
  readonly lists: 'routed' | 'filtered';
}

/** The belongs_to that holds the tenant of a record; undefined: the records have no tenant. */
export const tenantKeyOf = ({ tenantLayout }: Pick<Collection, 'tenantLayout'>): TenantKey | undefined =>
  tenantLayout?.kind === 'by' ? tenantLayout : undefined;

/** Some records are on several machines, or would be on a cluster. */
export const hasTenants = ({ collections }: Schema): boolean =>
  [...collections.values()].some(({ tenantLayout }) => tenantLayout !== null);

/** The member is the tenant of the record, which never changes. */
export const isTenant = ({ tenantLayout }: Pick<Collection, 'tenantLayout'>, name: string): boolean =>
  tenantLayout?.kind === 'by' && tenantLayout.by === name;

/** Records that agree in `within` and meet `where` differ in the value. */
export interface UniqueKey {
  /** Required fields and belongs_to. */
  readonly within: readonly string[];
  readonly where?: Policy;
  /** Values that differ in letter case alone are equal. */
  readonly ignoresCase: boolean;
}

/** Another record can have taken the value. */
export const isUniqueMember = ({ unique, uniqueWithin, uniqueKey }: UniqueMember): boolean =>
  unique || uniqueWithin !== undefined || uniqueKey !== undefined;
export type UniqueMember = Pick<Field, 'unique' | 'uniqueWithin' | 'uniqueKey'>;

/** A member that finds one record. */
export type UniqueField = Field | BelongsTo;

/** The members by which a record can be found and written. A key with a condition finds only some records. */
export function uniqueFieldsOf({ fields, relations, kind, countsChanges }: Collection): readonly UniqueField[] {
  // Registering makes users, and uploads make files.
  if (kind !== 'plain') return [];
  const references = [...relations.values()].filter((relation) => relation.kind === 'belongs_to');
  return [...fields.values(), ...references].filter(
    (member) =>
      isUniqueMember(member) &&
      !member.readOnly &&
      member.uniqueKey?.where === undefined &&
      (countsChanges || !('kind' in member)),
  );
}

/** The members that a value is unique within. */
export const withinOf = ({ uniqueWithin, uniqueKey }: UniqueMember): readonly string[] =>
  uniqueKey?.within ?? (uniqueWithin === undefined ? [] : [uniqueWithin]);

/** A condition on every record that a request writes. INVARIANT: it names `@next`. */
export interface Check {
  /** The name of the author's; one with a space is of transitions. */
  readonly name: string;
  readonly message: string;
  /** The author's text. */
  readonly when: string;
  /** The members that its errors are about; empty: the record as a whole. */
  readonly fields: readonly string[];
  /** The rule that holds for the records that fail the check: its condition is false, not unknown. */
  readonly violated: Readonly<Record<WriteAction, readonly Policy[]>>;
  /** Given for the transitions of an enum field, which are held to as a check of updates is. */
  readonly transitions?: Transitions;
}
/** The name of the check that holds a field to its transitions; no check of the author's has a space. */
export const nameOfTransitions = (field: string): string => `${field} transitions`;
export interface Transitions {
  readonly field: string;
  /** The values that can follow each one; none can follow a value without an entry. */
  readonly possible: ReadonlyMap<string, readonly (string | number)[]>;
}
export type WriteAction = 'create' | 'update';

/** The actions on a member of a record. `create` and `update` both write it. */
export type MemberAction = 'read' | 'create' | 'update';
/** Without rules for an action, those of the record decide alone. An empty list denies everyone. */
export type MemberAccess = Readonly<Partial<Record<MemberAction, readonly Policy[]>>>;

export interface Field extends CatalogField {
  readonly type: ScalarType;
  readonly uniqueKey?: UniqueKey;
  /** A constant of the field's type, or a value of the request: `@now`, `@today`, `@request.auth.id`. */
  readonly default?: Default;
  readonly was?: string;
  /** The author wrote `index: false`. */
  readonly noIndex?: true;
  /** A string is stored in lower case. */
  readonly lower?: boolean;
  /** A write gives it a value. `required` says that every stored record has one, which only a managed table ensures. */
  readonly needed: boolean;
  /** The name of another type that the column has, in a table of another owner. */
  readonly storedAs?: string;
  /** The type that the database casts a written value to. */
  readonly castTo?: string;
  /** The database computes it, and takes no other value. */
  readonly isComputed?: true;
  /** Never written through the API (`created_at`, `email`, `size`…). */
  readonly readOnly: boolean;
}
export type Default =
  | { readonly kind: 'constant'; readonly value: string | number | boolean }
  /** `zone` is given for `@today`. */
  | { readonly kind: 'now'; readonly zone?: string }
  | { readonly kind: 'auth'; readonly name: string };

export type Relation = BelongsTo | HasOne | HasMany | ManyToMany;
export interface BelongsTo extends CatalogBelongsTo {
  readonly onDelete: 'cascade' | 'restrict' | 'set_null';
  /** True also if a has_one names it by `via`. */
  readonly unique: boolean;
  readonly uniqueKey?: UniqueKey;
  readonly default?: Default;
  readonly was?: string;
  /** As of a field. */
  readonly needed: boolean;
  readonly readOnly: boolean;
  /** The database lets the service change no value of the column, so it stays when its record is deleted. */
  readonly isKept?: boolean;
  /** Given for a reference of several columns, in the order of the key that it refers to. */
  readonly columns?: readonly string[];
}
export interface ManyToMany extends CatalogManyToMany {
  readonly was?: string;
}
export type { HasMany, HasOne };

export interface OAuthProvider {
  readonly name: string;
  /** Shown to users. Default: that of the preset, or the name. */
  readonly title?: string | undefined;
  /** Given without a preset; beside one, the preset's own address is replaced by it. */
  readonly issuer?: string | undefined;
  readonly preset?: string | undefined;
  readonly clientId: string;
  /** For `apple`, a private key in PEM, which signs secrets. */
  readonly clientSecret: string;
  /** Default: those of the preset. */
  readonly scopes?: readonly string[] | undefined;
  readonly clientAuth?: 'basic' | 'post' | undefined;
  /** Given for `apple`: the team, and the id of the private key. */
  readonly teamId?: string | undefined;
  readonly keyId?: string | undefined;
}

/** `points` in `window` seconds. */
export interface Rate {
  readonly points: number;
  readonly window: number;
}
export interface Limits {
  /** Failed logins for an account, and from an address. */
  readonly loginAccount: Rate;
  readonly loginAddress: Rate;
  readonly register: Rate;
  readonly refresh: Rate;
  readonly reset: Rate;
  readonly guest: Rate;
  /** Bytes of a JSON body. */
  readonly body: number;
  /** Bytes of an answer of records. */
  readonly answer: number;
  /** Seconds that the statements of a read may take. */
  readonly queryTime: number;
  /** Seconds that a transaction may take, with its waits for locks. */
  readonly writeTime: number;
  /** Open streams of changes: of one caller, and of a process. */
  readonly feeds: { readonly user: number; readonly node?: number | undefined };
}
export interface Uploads {
  /** Bytes. */
  readonly maxSize: number;
  /** Media types, or all of one kind (`image/*`); empty: all. */
  readonly types: readonly string[];
  /** Bytes by role; `default` is for everyone. The largest of a user's roles counts. */
  readonly quota: ReadonlyMap<string, number>;
  /** Sizes that image variants may have. */
  readonly images: {
    readonly widths: readonly number[];
    readonly heights: readonly number[];
    readonly maxPixels: number;
  };
}

/** Names that no field or relation has. */
export const RESERVED_NAMES: readonly string[] = [
  'id',
  'created_at',
  'updated_at',
  'expand_more',
  'can',
  'since',
  'feed',
  ...LIST_WORDS,
];
/** Words of addresses below a collection, which no new record gets as its id. */
export const RESERVED_IDS: readonly string[] = ['aggregate', 'by', 'can', 'changes', 'delete', 'query', 'update'];
/** Routes of the service under `/api`. */
export const RESERVED_COLLECTIONS: readonly string[] = ['auth', 'batch', 'changes', 'keys'];
export const BUILT_IN: readonly string[] = ['users', 'files'];
