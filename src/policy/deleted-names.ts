/** Deleted records have a name of their own in the catalog, which no collection of a schema has. */
const DELETED_PREFIX = 'deleted ';

/** The name of the deleted records of a collection. */
export const deletedName = (collection: string): string => `${DELETED_PREFIX}${collection}`;
/** The collection of living or deleted records. */
export const livingName = (name: string): string =>
  name.startsWith(DELETED_PREFIX) ? name.slice(DELETED_PREFIX.length) : name;
