import * as z from 'zod'
import { onLimits, type Limits, type RetryPolicy } from './limits.ts'
import { amount, objectOf, optional, text } from '../values/schema.ts'

/** Checks limits. */
export const limits: z.ZodType<Limits> = objectOf<Limits>({
  maxTurns: optional(amount),
  maxToolCalls: optional(amount),
  maxToolCallsPerTurn: optional(amount),
  maxCallsByTool: optional(z.record(text, amount)),
  maxTotalTokens: optional(amount),
  maxTotalInputTokens: optional(amount),
  maxTotalOutputTokens: optional(amount),
  maxCostUsd: optional(amount),
  maxDurationMs: optional(amount),
  maxRepeats: optional(amount),
  maxConcurrency: optional(amount),
  graceMs: optional(amount),
  maxApprovalMs: optional(amount),
  onLimit: optional(z.enum(onLimits)),
})

/** Checks how failed model calls are tried again. */
export const retry: z.ZodType<RetryPolicy> = objectOf<RetryPolicy>({
  maxAttempts: amount,
  baseMs: amount,
  capMs: amount,
  maxRetryAfterMs: amount,
  maxTotalMs: optional(amount),
})
