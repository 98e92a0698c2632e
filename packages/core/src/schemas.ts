// Events, commands and message parts as schemas of zod, which other schemas may be made of.
export {
  eventSchemas,
  outsideCommandSchema,
  resultPartSchema,
  userPartSchema,
} from './events/event-schema.ts'
