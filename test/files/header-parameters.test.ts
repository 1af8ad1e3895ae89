/** Parameters of headers, as browsers and others write them. */
import { expect, test } from 'vitest';
import { headerParameters } from '../../src/files/receive/header-parameters.ts';

test.each<readonly [string, Readonly<Record<string, string>>]>([
  ['form-data', {}],
  ['form-data; name="file"', { name: 'file' }],
  ['form-data;NAME = "file" ; filename=a.txt', { name: 'file', filename: 'a.txt' }],
  ['form-data; name="a"; name="b"', { name: 'a' }],
  ['form-data; filename="; name=x"; name=y', { filename: '; name=x', name: 'y' }],
  ['form-data; filename="a;b=c"', { filename: 'a;b=c' }],
  [String.raw`form-data; filename="a \"b\" \\ c"; name=x`, { filename: String.raw`a "b" \ c`, name: 'x' }],
  [String.raw`form-data; filename="C:\dir\file"`, { filename: String.raw`C:\dir\file` }],
  [String.raw`form-data; filename="C:\dir\"`, { filename: 'C:\\dir\\' }],
  [String.raw`form-data; filename="C:\dir\"; name="x"`, { filename: 'C:\\dir"; name=' }],
  ['form-data; filename="open', {}],
  ['form-data; flag; name=x', { name: 'x' }],
  ["form-data; filename*=UTF-8''a%20b", { 'filename*': "UTF-8''a%20b" }],
  ['form-data; name=', { name: '' }],
  ['form-data; name="x" rest; filename=y', { name: 'x', filename: 'y' }],
])('%s', (header, expected) => {
  expect(Object.fromEntries(headerParameters(header))).toEqual(expected);
});
