import * as z from 'zod'
import { onLimits, type Limits, type RetryPolicy } from './limits.ts'
import { amount, objectOf, optional, text } from '../values/schema.ts'

/** Checks limits. */
export const limits: z.ZodType<Limits> = objectOf<Limits>({
  turnsMax: optional(amount),
  toolCallsMax: optional(amount),
  toolCallsPerTurnMax: optional(amount),
  callsMaxByTool: optional(z.record(text, amount)),
  tokensMax: optional(amount),
  inputTokensMax: optional(amount),
  outputTokensMax: optional(amount),
  costMaxUsd: optional(amount),
  durationMaxMs: optional(amount),
  repeatsMax: optional(amount),
  concurrencyMax: optional(amount),
  graceMs: optional(amount),
  approvalMaxMs: optional(amount),
  onLimit: optional(z.enum(onLimits)),
})

/** Checks how failed model calls are tried again. */
export const retry: z.ZodType<RetryPolicy> = objectOf<RetryPolicy>({
  attemptsMax: amount,
  baseMs: amount,
  capMs: amount,
  retryAfterMaxMs: amount,
  totalMaxMs: optional(amount),
})
