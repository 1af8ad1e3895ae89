/** The nearest name that exists, for the messages of rooms that do not know the grammar. */
export { nearest as nearestName } from '../../grammar/suggest.ts';
