/** The answer of `GET /api/_schema`. */
import { transport } from './api-service.ts';

interface ServedRule {
  readonly roles: readonly string[];
  readonly when?: string;
}
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
}
export interface ServedRelation {
  readonly name: string;
  readonly kind: 'belongs_to' | 'has_one' | 'has_many' | 'many_to_many';
  readonly collection: string;
  readonly required: boolean;
  readonly read_only: boolean;
  readonly via?: string;
}
export interface ServedCollection {
  readonly name: string;
  readonly kind: 'plain' | 'users' | 'files';
  readonly key: { readonly type: string; readonly made_by: string };
  readonly title: string | null;
  readonly fields: readonly ServedField[];
  readonly relations: readonly ServedRelation[];
  readonly can: { readonly list: boolean; readonly create: boolean };
  /** For administrators, by action. */
  readonly rules?: Readonly<Record<string, readonly ServedRule[]>>;
}
interface StudioUser {
  readonly id: string;
  readonly email: string;
  readonly roles: readonly string[];
}
export interface ServedSchema {
  readonly collections: readonly ServedCollection[];
  readonly me: StudioUser;
  readonly roles?: readonly { readonly name: string; readonly includes: readonly string[] }[];
}

export const fetchSchema = async (): Promise<ServedSchema> =>
  (await transport.json<{ readonly data: ServedSchema }>('/api/_schema')).data;

export const leadsToOne = ({ kind }: ServedRelation): boolean => kind === 'belongs_to' || kind === 'has_one';
