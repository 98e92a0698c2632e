// What core uses of zod.
export {
  array,
  boolean,
  custom,
  discriminatedUnion,
  enum,
  exactOptional,
  fromJSONSchema,
  int,
  lazy,
  literal,
  looseObject,
  number,
  record,
  string,
  union,
  unknown,
} from 'zod'
