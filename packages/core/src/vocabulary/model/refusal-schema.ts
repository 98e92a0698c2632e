import { exactly, flag, objectOf, optional, type Schema, text, wordOf } from '../values/schema.ts'
import type { ModelRefusal, RefusalPolicy } from './refusal.ts'

const isTrue = exactly(true)

/** What a vendor says of a refusal, as events and signals hold it. */
export const refusal: Schema<ModelRefusal> = objectOf<ModelRefusal>({
  reason: optional(text),
  leaveOut: optional(isTrue),
  askAnother: optional(isTrue),
})

/** What an agent makes of a refusal, as its definition holds it. */
export const refusalPolicy: Schema<RefusalPolicy> = objectOf<RefusalPolicy>({
  history: optional(wordOf(['keep', 'leave_out'])),
  fallback: optional(flag),
})
