/** For messages about a name that no field, relation or filter has. */
export { nearest as nearestName } from '../../grammar/suggest.ts';
