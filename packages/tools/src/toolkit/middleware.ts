import { ConfigurationError, type Tool } from '@tallystick/core'
import { option, requireOptions } from '@tallystick/core/kit'
import type {
  Json,
  JsonObject,
  Outcome,
  ResultPart,
  Retryable,
  ToolEffect,
  ToolRun,
  ToolSignal,
} from '@tallystick/core/vocabulary'
import { Observable, type Subscription } from 'rxjs'
import { describeError, type Ending, failureOf, textEnding } from '../execution/outcome.ts'
import { boundedText } from '../content/bounded-text.ts'

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
      /** What the model reads in the place of `content`. */
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

const { anyFunction, fields, filledText, listOf, maybe, valueThat } = option
const middlewareList = listOf(
  fields<ToolMiddleware>({ name: filledText, run: anyFunction, progress: maybe(anyFunction) }),
)
const toolList = listOf(valueThat('a tool', (value) => typeof Object(value).run === 'function'))

const wrapOptions = fields<{ readonly tools: readonly object[]; readonly middleware: readonly object[] }>({
  tools: toolList,
  middleware: middlewareList,
})

/** The same tools with middleware around their execution, the first one outermost. Checks and approvals stay as they are. */
export function wrapTools<Context>(
  tools: readonly Tool<Context>[],
  middleware: readonly ToolMiddleware<Context>[],
): readonly Tool<Context>[] {
  requireOptions('wrapTools', wrapOptions, { tools, middleware })
  return tools.map((tool) => wrapped(tool, middleware))
}

function wrapped<Context>(
  tool: Tool<Context>,
  middleware: readonly ToolMiddleware<Context>[],
): Tool<Context> {
  if (tool.child !== undefined) {
    throw new ConfigurationError(
      `wrapTools: the tool ${tool.name} is an agent, whose work is a run of its own. Wrap the tools of that agent.`,
    )
  }
  const outside = middleware.toReversed()
  const run = (call: ToolRun<Context>): Observable<ToolSignal> =>
    outside.reduce((inside, each) => around(each, tool, call, inside), tool.run(call))
  return Object.freeze({
    ...tool,
    run,
    // A spread loses what a class keeps on its prototype.
    check: (input: JsonObject, context: Parameters<typeof tool.check>[1]) => tool.check(input, context),
    ...(tool.reconcile && {
      reconcile: (call: Parameters<NonNullable<typeof tool.reconcile>>[0]) => tool.reconcile!(call),
    }),
  })
}

/** One middleware around what is inside of it: progress passes through, and exactly one ending follows. */
function around<Context>(
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
    const onProgress = (data: Json): void => {
      const passed = progress ? progress(data, call) : data
      if (passed !== undefined) subscriber.next({ type: 'tool_progressed', data: passed })
    }
    const next = (): Promise<MiddlewareEnding> => {
      if (hasRun) return Promise.reject(new TypeError(`The middleware ${name} called next() twice`))
      hasRun = true
      return new Promise((resolve, reject) => {
        stop = reject
        inner = inside.subscribe({
          next: (signal) => {
            if (signal.type === 'tool_progressed') {
              try {
                onProgress(signal.data)
              } catch {
                // What cannot be changed as it should be is not reported.
              }
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
        // A middleware that changed the result may have hidden what the exception says, too.
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
    work().then(end, (thrown: unknown) => end(failed(name, { hasRun, effect: tool.effect }, thrown)))
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

/** What the middleware threw, as an ending. The result of the tool is not in it: it may be what was to be hidden. */
function failed(
  name: string,
  { hasRun, effect }: { readonly hasRun: boolean; readonly effect: ToolEffect },
  thrown: unknown,
): Ending {
  if (!hasRun) return failureOf(thrown)
  const why = boundedText(describeError(thrown), 2_000)
  const done = effect === 'write' ? ' It may have taken effect: check before you call it again.' : ''
  const text = `The tool was run, but ${name} failed around it (${why}), so its result is not shown.${done}`
  return { ...textEnding('failed', text), thrown }
}
