/** The tenant of the records of a collection. Runs without Node. */
import type { Collection, TenantKey } from '../schema/model/model.ts';

/** The belongs_to that holds the tenant of a record; undefined: the records have no tenant. */
export const tenantKeyOf = ({ tenantLayout }: Pick<Collection, 'tenantLayout'>): TenantKey | undefined =>
  tenantLayout?.kind === 'by' ? tenantLayout : undefined;
