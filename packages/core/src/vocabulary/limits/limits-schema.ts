import { amount, objectOf, optional, recordOf, type Schema, wordOf } from '../values/schema.ts'
import { forEveryLimit, onLimits, type Limits, type RetryPolicy } from './limits.ts'

/** Checks limits. */
export const limits: Schema<Limits> = objectOf<Limits>({
  ...forEveryLimit(optional(amount)),
  maxCallsByTool: optional(recordOf(amount)),
  maxConcurrency: optional(amount),
  graceMs: optional(amount),
  maxApprovalMs: optional(amount),
  onLimit: optional(wordOf(onLimits)),
})

/** Checks how failed calls are tried again. */
export const retry: Schema<RetryPolicy> = objectOf<RetryPolicy>({
  maxAttempts: amount,
  baseMs: amount,
  capMs: amount,
  maxRetryAfterMs: amount,
  maxTotalMs: optional(amount),
})
