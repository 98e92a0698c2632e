import * as z from 'zod'
import type { ModelRefusal, RefusalPolicy } from './refusal.ts'
import { flag, objectOf, optional, text } from '../values/schema.ts'

const isTrue = z.literal(true)

/** What a vendor says of a refusal, as events and signals hold it. */
export const refusal: z.ZodType<ModelRefusal> = objectOf<ModelRefusal>({
  reason: optional(text),
  leaveOut: optional(isTrue),
  askAnother: optional(isTrue),
})

/** What an agent makes of a refusal, as its definition holds it. */
export const refusalPolicy: z.ZodType<RefusalPolicy> = objectOf<RefusalPolicy>({
  history: optional(z.enum(['keep', 'leave_out'])),
  fallback: optional(flag),
})
