import { ConfigurationError, type Tool } from '@tallystick/core'
import {
  omitUndefined,
  option,
  requireOptions,
  type Retryable,
  type UnfitInput,
} from '@tallystick/core/internal'
import {
  type CallVerdict,
  toCanonicalJson,
  type Json,
  type JsonObject,
  type Outcome,
  type ResultPart,
  type ToolEffect,
  type ToolRun,
  type ToolSignal,
} from '@tallystick/core/vocabulary'
import { Observable, type Subscription } from 'rxjs'
import { describeError, endThrown, createTextEnding } from '../define/outcome.ts'
import { repairUnfit } from '../define/repair.ts'
import { boundText } from '../define/text.ts'

/** One start of a call, on its way to its tool. */
export interface MiddlewareCall<Context = unknown> extends Omit<ToolRun<Context>, 'cancelled$' | 'input'> {
  readonly tool: string
  readonly effect: ToolEffect
  /** The input that the tool runs with: checked, and approved if that was needed. Middleware cannot change it. */
  readonly input: JsonObject
  /** Aborts when the call should stop, or its caller is gone. */
  readonly signal: AbortSignal
}

/** How a call ended, or that it is settled later. */
export type MiddlewareEnding =
  | ({
      readonly outcome: Outcome
      readonly content: readonly ResultPart[]
      /** Replaces `content` for the model. */
      readonly projected?: readonly ResultPart[]
    } & Retryable)
  | { readonly externalId: string; readonly deadlineMs?: number }

/**
 * Code around the execution of tools. `next` runs the next middleware, and in the last one the tool. It can be called
 * once, since one start is recorded; if it is not called, the tool does not run. What `run` returns is recorded as the
 * ending of the call; if it throws, the call ends as `failed`.
 */
export interface ToolMiddleware<Context = unknown> {
  readonly name: string
  readonly run: (
    call: MiddlewareCall<Context>,
    next: () => Promise<MiddlewareEnding>,
  ) => MiddlewareEnding | Promise<MiddlewareEnding>
  /** Changes progress on its way out; `undefined` leaves the report out. */
  readonly progress?: ((data: Json, call: MiddlewareCall<Context>) => Json | undefined) | undefined
}

const { anyFunction, fields, filledText, listOf, maybe, numberFrom, valueThat } = option
const wrapOptions = fields<{ readonly tools: readonly object[]; readonly middleware: readonly object[] }>({
  tools: listOf(valueThat('a tool', (value) => typeof Object(value).run === 'function')),
  middleware: listOf(
    fields<ToolMiddleware>({ name: filledText, run: anyFunction, progress: maybe(anyFunction) }),
  ),
})

/** The same tools with middleware around their execution, the first one outermost. Checks and approvals stay as they are. */
export function wrapTools<Context>(
  tools: readonly Tool<Context>[],
  middleware: readonly ToolMiddleware<Context>[],
): readonly Tool<Context>[] {
  requireOptions('wrapTools', wrapOptions, { tools, middleware })
  const outside = middleware.toReversed()
  return tools.map((tool) => {
    if (tool.child !== undefined) {
      throw new ConfigurationError(
        `wrapTools: the tool ${tool.name} is an agent, whose work is a run of its own. Wrap the tools of that agent.`,
      )
    }
    return Object.freeze({
      ...tool,
      run: (call: ToolRun<Context>): Observable<ToolSignal> =>
        outside.reduce((inside, each) => runAround(each, tool, call, inside), tool.run(call)),
      // A spread loses what a class keeps on its prototype.
      check: tool.check.bind(tool),
      ...(tool.reconcile && { reconcile: tool.reconcile.bind(tool) }),
    })
  })
}

/** One middleware around what is inside of it: progress passes through, and exactly one ending follows. */
function runAround<Context>(
  { name, run, progress }: ToolMiddleware<Context>,
  tool: Tool<Context>,
  start: ToolRun<Context>,
  inside: Observable<ToolSignal>,
): Observable<ToolSignal> {
  return new Observable((subscriber) => {
    const abort = new AbortController()
    const cancellation = start.cancelled$.subscribe({
      next: (reason) => abort.abort(new DOMException(reason || 'The call was cancelled', 'AbortError')),
      error: () => abort.abort(),
    })
    const { cancelled$: _cancelled, ...known } = start
    const call: MiddlewareCall<Context> = Object.freeze({
      ...known,
      tool: tool.name,
      effect: tool.effect,
      signal: abort.signal,
    })
    let inner: Subscription | undefined
    let stop: ((gone: Error) => void) | undefined
    let hasRun = false
    let failure: (ToolSignal & { readonly type: 'tool_ended' }) | undefined
    const onProgress = ({ data, spent }: Extract<ToolSignal, { type: 'tool_progressed' }>): void => {
      let passed: Json | undefined
      try {
        passed = progress ? progress(data, call) : data
      } catch {
        // Progress that the middleware could not change is not reported.
      }
      if (passed === undefined && spent === undefined) return
      subscriber.next({ type: 'tool_progressed', data: passed ?? null, ...omitUndefined({ spent }) })
    }
    const next = (): Promise<MiddlewareEnding> => {
      if (hasRun) return Promise.reject(new TypeError(`The middleware ${name} called next() twice`))
      hasRun = true
      return new Promise((resolve, reject) => {
        stop = reject
        inner = inside.subscribe({
          next: (signal) => {
            if (signal.type === 'tool_progressed') {
              onProgress(signal)
              return
            }
            if (signal.type === 'tool_ended') failure = signal
            const { type: _type, thrown: _thrown, ...ending } = signal as ToolSignal & { thrown?: unknown }
            resolve(ending as MiddlewareEnding)
          },
          error: reject,
          complete: () => reject(new Error(`The tool ${tool.name} ended without a result`)),
        })
      })
    }
    const work = async (): Promise<MiddlewareEnding> => await run(call, next)
    const end = (ending: MiddlewareEnding): void => {
      if ('externalId' in ending) subscriber.next({ ...ending, type: 'tool_deferred' })
      else {
        // A middleware that changed the result may have hidden the text of the exception, too.
        const isAsThrown =
          failure !== undefined &&
          'thrown' in failure &&
          ending.content === failure.content &&
          ending.projected === failure.projected
        const thrown = isAsThrown ? { thrown: failure?.thrown } : {}
        subscriber.next({ ...ending, ...thrown, type: 'tool_ended' })
      }
      subscriber.complete()
    }
    work().then(end, (thrown: unknown) => {
      if (!hasRun) return end(endThrown(thrown))
      // The tool's result is left out: the middleware may have meant to hide it.
      const why = boundText(describeError(thrown), 2_000)
      const done = tool.effect === 'write' ? ' It may have taken effect: check before you call it again.' : ''
      const text = `The tool was run, but ${name} failed around it (${why}), so its result is not shown.${done}`
      end({ ...createTextEnding('failed', text), thrown } as MiddlewareEnding)
    })
    return () => {
      cancellation.unsubscribe()
      inner?.unsubscribe()
      // Middleware that holds something while it waits gets to release it.
      const gone = new DOMException('No caller waits for this call any more', 'AbortError')
      abort.abort(gone)
      stop?.(gone)
    }
  })
}

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
  requireOptions('audit', anyFunction, log, 'log')
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
      const key = toCanonicalJson([scope(call), call.tool, call.input])
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
  requireOptions('redact', anyFunction, change, 'change')
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
    progress: (data) => changeTexts(data, change),
  }
}

function changeTexts(data: Json, change: (text: string) => string): Json {
  if (typeof data === 'string') return change(data)
  if (Array.isArray(data)) return data.map((item) => changeTexts(item as Json, change))
  if (typeof data !== 'object' || data === null) return data
  return Object.fromEntries(
    Object.entries(data).map(([key, item]) => [change(key), changeTexts(item, change)]),
  )
}

/** How writes are described. */
export interface DryRunOptions {
  /** Returns what a call would have done, in words. Default: its tool and its input. */
  readonly describe?: ((call: { readonly tool: string; readonly input: JsonObject }) => string) | undefined
}

const dryRunOptions = fields<DryRunOptions>({ describe: maybe(anyFunction) })

const maxDescription = 2_000

/**
 * Returns the same tools, except that those that write do not run: each of their calls is checked, and then ends as
 * `skipped` with a text that says what it would have done. Nothing is started, and no approval is asked. Reads and handoffs
 * run.
 */
export function dryRun<Context>(
  tools: readonly Tool<Context>[],
  options: DryRunOptions = {},
): readonly Tool<Context>[] {
  requireOptions('dryRun', checkableTools, { tools })
  requireOptions('dryRun', dryRunOptions, options)
  const { describe } = options
  return tools.map((tool) => {
    const { name } = tool
    if (tool.effect === 'read' || tool.handoff) return tool
    return Object.freeze({
      ...tool,
      check: async (input: JsonObject, context: Parameters<typeof tool.check>[1]): Promise<CallVerdict> => {
        const verdict = await tool.check(input, context)
        if (verdict.kind === 'refuse') return verdict
        const asked =
          verdict.kind === 'ask'
            ? ` A person would have been asked first${verdict.reason === undefined ? '' : ` (${boundText(verdict.reason, maxDescription)})`}.`
            : ''
        const plain = `${name} would have been called with ${boundText(JSON.stringify(input), maxDescription)}.`
        let described: string | undefined
        try {
          const ownText: unknown = describe?.({ tool: name, input })
          if (typeof ownText === 'string' && ownText !== '') described = boundText(ownText, maxDescription)
        } catch {
          // The plain words say enough.
        }
        const text =
          `This is a dry run, in which nothing is changed. ${described ?? plain}${asked} ` +
          'Continue as if it were done, and say in your answer that it was not.'
        return { kind: 'refuse', outcome: 'skipped', text }
      },
      // A tool that writes is never run.
      run: () => {
        throw new TypeError(`The tool ${name} is part of a dry run`)
      },
    })
  })
}

const checkableTools = fields<{ readonly tools: readonly object[] }>({
  tools: listOf(valueThat('a tool', (value) => typeof Object(value).check === 'function')),
})

/**
 * Returns the same tools, which try once to repair an input that does not fit: JSON with small mistakes (trailing
 * commas, single quotes, a code fence, missing closing brackets …), and texts where the schema expects a number, a
 * boolean, an object or a list. A repaired input that fits replaces the model's input: it is checked, approved,
 * recorded and run, and the repairs are on record. Only inputs with exactly one meaning are repaired; a write whose
 * input ended too early needs an approval.
 */
export function repairInputs<Context>(tools: readonly Tool<Context>[]): readonly Tool<Context>[] {
  requireOptions('repairInputs', checkableTools, { tools })
  return tools.map((tool) =>
    Object.freeze({ ...tool, repair: (unfit: UnfitInput) => repairUnfit(tool, unfit) }),
  )
}
