import { option, requireOptions } from '@tallystick/core/kit'
import { canonicalJson, type Json, type Outcome, type ResultPart } from '@tallystick/core/vocabulary'
import type { MiddlewareCall, MiddlewareEnding, ToolMiddleware } from './middleware.ts'

/** An entry of `audit`: a call is about to run, or has ended. */
export type AuditEntry = {
  readonly tool: string
  readonly runId: string
  readonly toolCallId: string
  readonly attempt: number
  readonly idempotencyKey: string
} & ({ readonly phase: 'started' } | { readonly phase: 'ended'; readonly outcome: Outcome | 'deferred' })

/**
 * Reports each start and each ending to `log`, and waits for it. If `log` throws before the start, the tool does not
 * run.
 */
export function audit(log: (entry: AuditEntry) => unknown): ToolMiddleware {
  requireOptions('audit', fields<{ readonly log: object }>({ log: anyFunction }), { log })
  return {
    name: 'audit',
    run: async ({ tool, runId, toolCallId, attempt, idempotencyKey }, next) => {
      const of = { tool, runId, toolCallId, attempt, idempotencyKey }
      await log({ ...of, phase: 'started' })
      const ending = await next()
      await log({ ...of, phase: 'ended', outcome: 'outcome' in ending ? ending.outcome : 'deferred' })
      return ending
    },
  }
}

/** Which calls share a cache, or a rate. */
export type Scope = (call: MiddlewareCall) => string

/** How results are kept. */
export interface CacheOptions {
  /** Milliseconds for which a result is served. Default: 60,000. */
  readonly maxAgeMs?: number | undefined
  /** The most results that are kept; the oldest goes first. Default: 1,000. */
  readonly maxEntries?: number | undefined
  /** Calls of one scope share results. Default: calls of one run, so that no user sees results of another. */
  readonly scope?: Scope | undefined
  /** The time, in milliseconds. Default: `Date.now`. */
  readonly now?: (() => number) | undefined
}

const { anyFunction, fields, maybe, numberFrom } = option
const cacheOptions = fields<CacheOptions>({
  maxAgeMs: maybe(numberFrom(0)),
  maxEntries: maybe(numberFrom(1, { whole: true })),
  scope: maybe(anyFunction),
  now: maybe(anyFunction),
})

const ownRun: Scope = ({ runId }) => runId

/** Serves the result of an equal, recent and successful call of a tool that reads. */
export function cache(given: CacheOptions = {}): ToolMiddleware {
  requireOptions('cache', cacheOptions, given)
  const { maxAgeMs = 60_000, maxEntries = 1_000, scope = ownRun, now = Date.now } = given
  const kept = new Map<string, { readonly at: number; readonly ending: MiddlewareEnding }>()
  return {
    name: 'cache',
    run: async (call, next) => {
      if (call.effect !== 'read') return await next()
      const key = canonicalJson([scope(call), call.tool, call.input])
      const found = kept.get(key)
      if (found && now() - found.at < maxAgeMs) return found.ending
      const ending = await next()
      if ('outcome' in ending && ending.outcome === 'success') {
        kept.delete(key)
        kept.set(key, { at: now(), ending })
        const [oldest] = kept.keys()
        if (kept.size > maxEntries && oldest !== undefined) kept.delete(oldest)
      }
      return ending
    },
  }
}

/** How many calls may start. */
export interface RateLimitOptions {
  /** Calls that start within any `perMs` milliseconds, at most. */
  readonly maxCalls: number
  readonly perMs: number
  /** Calls of one scope share the rate. Default: those of one tool, in all runs of this process. */
  readonly scope?: Scope | undefined
  /** The time, in milliseconds. Default: `Date.now`. */
  readonly now?: (() => number) | undefined
}

const rateOptions = fields<RateLimitOptions>({
  maxCalls: numberFrom(1, { whole: true }),
  perMs: numberFrom(1),
  scope: maybe(anyFunction),
  now: maybe(anyFunction),
})

/**
 * Refuses calls above a rate: they fail, with the time at which the next call may start. The runtime then tries a tool
 * with `retry` again at that time, also after a crash; the middleware does not wait.
 */
export function rateLimit(given: RateLimitOptions): ToolMiddleware {
  requireOptions('rateLimit', rateOptions, given)
  const { maxCalls, perMs, scope = ({ tool }) => tool, now = Date.now } = given
  const starts = new Map<string, number[]>()
  return {
    name: 'rateLimit',
    run: async (call, next) => {
      const time = now()
      const isRecent = (at: number): boolean => at > time - perMs
      for (const [key, times] of starts) if (!times.some(isRecent)) starts.delete(key)
      const key = scope(call)
      const recent = (starts.get(key) ?? []).filter(isRecent)
      if (recent.length >= maxCalls) {
        const retryAfterMs = Math.ceil((recent[0] ?? time) + perMs - time)
        const text = `${call.tool} is called too often: there is room again in ${retryAfterMs} ms. Nothing was run.`
        return { outcome: 'failed', content: [{ type: 'text', text }], retryable: true, retryAfterMs }
      }
      starts.set(key, [...recent, time])
      return await next()
    },
  }
}

/** Changes every text that leaves a tool, before anything of it is recorded: results, projections and progress. */
export function redact(change: (text: string) => string): ToolMiddleware {
  requireOptions('redact', fields<{ readonly change: object }>({ change: anyFunction }), { change })
  const parts = (content: readonly ResultPart[]): readonly ResultPart[] =>
    content.map((part) => (part.type === 'text' ? { ...part, text: change(part.text) } : part))
  return {
    name: 'redact',
    run: async (_call, next) => {
      const ending = await next()
      if (!('outcome' in ending)) return ending
      const { content, projected } = ending
      return { ...ending, content: parts(content), ...(projected && { projected: parts(projected) }) }
    },
    progress: (data) => changedTexts(data, change),
  }
}

function changedTexts(data: Json, change: (text: string) => string): Json {
  if (typeof data === 'string') return change(data)
  if (Array.isArray(data)) return data.map((item) => changedTexts(item as Json, change))
  if (typeof data !== 'object' || data === null) return data
  return Object.fromEntries(
    Object.entries(data).map(([key, item]) => [change(key), changedTexts(item, change)]),
  )
}
