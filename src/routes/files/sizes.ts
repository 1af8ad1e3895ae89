/** `?width=&height=&fit=` of an image. Not a route. */
import type { OperationParameter, OperationScope } from '../../describe/operation.ts';
import { FITS, type Sizes } from '../../files/variants/variants.ts';
import type { QueryPair } from '../../http/request.ts';
import { type ErrorDetail, Problem } from '../../problem.ts';
import type { Uploads } from '../../schema/model/model.ts';

export function sizeParameters({ schema }: OperationScope): readonly OperationParameter[] {
  const { widths, heights } = schema.uploads.images;
  const parameter = (name: string, description: string, values: OperationParameter['schema']): OperationParameter => ({
    name,
    in: 'query',
    description,
    schema: values,
  });
  return [
    ...(widths.length > 0 ? [parameter('width', 'Of the image, in pixels.', { type: 'integer', enum: widths })] : []),
    ...(heights.length > 0
      ? [parameter('height', 'Of the image, in pixels.', { type: 'integer', enum: heights })]
      : []),
    parameter('fit', 'How the image fills both sizes; needs one of them.', {
      type: 'string',
      enum: FITS,
      default: 'cover',
    }),
  ];
}

/** Undefined: the request is for the original. Throws `invalid_parameter`. */
export function readSizes(pairs: readonly QueryPair[], { widths, heights }: Uploads['images']): Sizes | undefined {
  const errors: ErrorDetail[] = [];
  const width = readSize(pairs, { key: 'width', sizes: widths }, errors);
  const height = readSize(pairs, { key: 'height', sizes: heights }, errors);
  const fits = parameterValues(pairs, 'fit');
  const fit = fits.length === 0 ? 'cover' : FITS.find((known) => fits.length === 1 && known === fits[0]);
  if (fit === undefined) errors.push(sizeError('fit', `\`fit\` must be one of ${FITS.join(', ')}`));
  if (fits.length > 0 && width === undefined && height === undefined)
    errors.push(sizeError('fit', '`fit` needs a `width` or a `height`'));
  const [first] = errors;
  if (first !== undefined) throw new Problem('invalid_parameter', first.detail, { errors });
  return fit === undefined || (width === undefined && height === undefined) ? undefined : { width, height, fit };
}

const parameterValues = (pairs: readonly QueryPair[], key: string): readonly (string | undefined)[] =>
  pairs.filter((pair) => pair.key === key).map(({ value }) => value);

/** A key with the values that it can have. */
interface SizeChoice {
  readonly key: string;
  readonly sizes: readonly number[];
}

function readSize(pairs: readonly QueryPair[], { key, sizes }: SizeChoice, errors: ErrorDetail[]): number | undefined {
  const values = parameterValues(pairs, key);
  if (values.length === 0) return undefined;
  const size = values.length === 1 ? sizes.find((known) => String(known) === values[0]) : undefined;
  if (size === undefined) errors.push(sizeError(key, `\`${key}\` must be one of ${sizes.join(', ')}`));
  return size;
}

const sizeError = (parameter: string, detail: string): ErrorDetail => ({
  parameter,
  code: 'invalid_parameter',
  detail,
});
