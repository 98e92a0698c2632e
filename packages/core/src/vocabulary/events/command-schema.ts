import * as z from 'zod'
import type { OutsideCommand } from './command.ts'
import { resultPart, userMessage } from '../model/content-schema.ts'
import { childTotals } from './event-parts-schema.ts'
import { limitNames } from '../limits/limits.ts'
import { amount, jsonObject, objectOf, optional, ordinal, text, variantOf } from '../values/schema.ts'

type CommandOf<T extends OutsideCommand['type']> = Extract<OutsideCommand, { readonly type: T }>

/** Who decides, for the record: never empty. */
const name: z.ZodType<string> = z.string().regex(/\S/, 'names no person')

/** What may lie in a run's inbox, where any process can put it. */
export const outsideCommandSchema: z.ZodType<OutsideCommand> = variantOf<OutsideCommand>({
  steer: objectOf<CommandOf<'steer'>>({ type: z.literal('steer'), message: userMessage, receipt: text }),
  queue: objectOf<CommandOf<'queue'>>({ type: z.literal('queue'), message: userMessage, receipt: text }),
  approve: objectOf<CommandOf<'approve'>>({
    type: z.literal('approve'),
    toolCallId: text,
    by: name,
    via: optional(text),
    input: optional(jsonObject),
    attempt: optional(ordinal),
    inputDigest: optional(text),
  }),
  deny: objectOf<CommandOf<'deny'>>({
    type: z.literal('deny'),
    toolCallId: text,
    by: name,
    via: optional(text),
    reason: text,
    attempt: optional(ordinal),
    inputDigest: optional(text),
  }),
  settle: objectOf<CommandOf<'settle'>>({
    type: z.literal('settle'),
    toolCallId: text,
    outcome: z.enum(['success', 'failed']),
    content: z.array(resultPart),
    child: optional(childTotals),
  }),
  cancel: objectOf<CommandOf<'cancel'>>({
    type: z.literal('cancel'),
    by: optional(text),
    reason: optional(text),
  }),
  raise_limit: objectOf<CommandOf<'raise_limit'>>({
    type: z.literal('raise_limit'),
    limit: z.enum(limitNames),
    max: amount,
    by: name,
  }),
})
