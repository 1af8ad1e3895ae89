/**
 * What is used of `node:http`. An import of an ES module would load all that is in it, also its client of WebSockets, which takes
 * 20 ms of the start.
 */
export const { createServer, STATUS_CODES } = process.getBuiltinModule('node:http');
