import * as z from 'zod'
import { forEveryLimit, onLimits, type Limits, type RetryPolicy } from './limits.ts'
import { amount, objectOf, optional, text } from '../values/schema.ts'

/** Checks limits. */
export const limits: z.ZodType<Limits> = objectOf<Limits>({
  ...forEveryLimit(optional(amount)),
  maxCallsByTool: optional(z.record(text, amount)),
  maxConcurrency: optional(amount),
  graceMs: optional(amount),
  maxApprovalMs: optional(amount),
  onLimit: optional(z.enum(onLimits)),
})

/** Checks how failed calls are tried again. */
export const retry: z.ZodType<RetryPolicy> = objectOf<RetryPolicy>({
  maxAttempts: amount,
  baseMs: amount,
  capMs: amount,
  maxRetryAfterMs: amount,
  maxTotalMs: optional(amount),
})
