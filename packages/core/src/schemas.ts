// The vocabulary as schemas of zod, which other schemas may be made of: an entry of its own, since zod takes long to begin.
export {
  eventSchemas,
  outsideCommandSchema,
  resultPartSchema,
  userPartSchema,
} from './events/event-schema.ts'
