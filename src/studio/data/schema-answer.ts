/** The answer of `GET /api/_schema`. */
import type { PolicyCatalog } from '../../policy/request/catalog-document.ts';
import { transport } from './api-service.ts';

/** The place of a condition in the text of the schema, its quotes included. */
export interface RulePlace {
  readonly offset: number;
  readonly length: number;
}
export interface ServedRule {
  readonly roles: readonly string[];
  readonly when?: string;
  readonly place?: RulePlace;
}
/** Rules by action; a member without the key has no rules of its own. */
type ServedRules = Readonly<Record<string, readonly ServedRule[]>>;
export interface ServedField {
  readonly name: string;
  readonly type: string;
  readonly required: boolean;
  readonly read_only: boolean;
  readonly unique: boolean;
  readonly search: boolean;
  readonly enum?: readonly (string | number)[];
  readonly min?: number | string;
  readonly max?: number | string;
  readonly default?: string | number | boolean;
  readonly rules?: ServedRules;
}
export interface ServedRelation {
  readonly name: string;
  readonly kind: 'belongs_to' | 'has_one' | 'has_many' | 'many_to_many';
  readonly collection: string;
  readonly required: boolean;
  readonly read_only: boolean;
  readonly default?: string | number | boolean;
  readonly via?: string;
  readonly rules?: ServedRules;
}
export interface ServedCollection {
  readonly name: string;
  readonly kind: 'plain' | 'users' | 'files';
  readonly key: { readonly type: string; readonly made_by: string };
  readonly title: string | null;
  readonly fields: readonly ServedField[];
  readonly relations: readonly ServedRelation[];
  readonly can: { readonly list: boolean; readonly create: boolean };
  /** The collection has a feed. */
  readonly changes: boolean;
  /** For administrators, by action. */
  readonly rules?: ServedRules;
}
interface StudioUser {
  readonly id: string;
  readonly email: string;
  readonly roles: readonly string[];
}
export interface ServedSchema {
  readonly collections: readonly ServedCollection[];
  readonly me: StudioUser;
  /** The names of these collections, for the compiler in the page. Conditions and roles are for administrators. */
  readonly catalog: PolicyCatalog;
  /** This and the others are for administrators. */
  readonly roles?: readonly { readonly name: string; readonly includes: readonly string[] }[];
  /** Absent if the file holds a secret. */
  readonly text?: string;
  readonly version?: string;
  readonly can_save?: boolean;
}

export const fetchSchema = async (): Promise<ServedSchema> =>
  (await transport.json<{ readonly data: ServedSchema }>('/api/_schema')).data;

export const leadsToOne = ({ kind }: ServedRelation): boolean => kind === 'belongs_to' || kind === 'has_one';
