import { Observable } from 'rxjs'
import { retryPolicy } from '../../agent/agent.ts'
import {
  anyFunction,
  fields,
  filledText,
  maybe,
  milliseconds,
  oneOf,
  plainFunction,
  requireOptions,
} from '../../values/option.ts'
import type { Tool, ToolRun } from '../../tools/tool.ts'
import type { Outcome } from '../../events/content.ts'
import type { RetryPolicy } from '../../events/limits.ts'
import type { Json, JsonObject } from '../../values/json.ts'
import type { CallVerdict, Reconciliation, Retryable } from '../../events/signals.ts'
import { recoveries, toolEffects, type Recovery, type ToolEffect } from '../../events/model-request.ts'

/** The name, the declaration and the function of a test tool. By default it is a read that returns its input. */
export interface TestToolOptions {
  readonly name: string
  readonly effect?: ToolEffect | undefined
  readonly recovery?: Recovery | undefined
  readonly timeoutMs?: number | undefined
  /** With `retry`, the tool is tried again after every error that `run` throws. */
  readonly retry?: RetryPolicy | undefined
  /** How long an error asks to wait before the next attempt, in milliseconds. */
  readonly retryAfterMs?: (() => number) | undefined
  readonly repeats?: 'allowed' | undefined
  readonly check?: ((input: JsonObject) => CallVerdict | Promise<CallVerdict>) | undefined
  /**
   * What the tool does. A returned text is its success, a thrown error its failure; a promise that never settles hangs.
   */
  readonly run?: ((run: ToolRun, report: TestReport) => string | Promise<string>) | undefined
  readonly reconcile?: ((run: Omit<ToolRun, 'cancelled$'>) => Promise<Reconciliation>) | undefined
}

/** What a test tool may report beside its result. */
export interface TestReport {
  progress(data: Json): void
  /** The call is settled later: what the tool returns after this does not count. */
  defer(externalId: string, deadlineMs?: number): void
}

/** A tool for tests of the runtime, which records its runs. For real tools use `defineTool` of `@tallystick/tools`. */
export interface TestTool extends Tool {
  readonly runs: readonly ToolRun[]
}

const testToolOptions = fields<TestToolOptions>(
  {
    name: filledText,
    effect: maybe(oneOf(toolEffects)),
    recovery: maybe(oneOf(recoveries)),
    timeoutMs: maybe(milliseconds),
    repeats: maybe(oneOf(['allowed'])),
    retry: maybe(retryPolicy),
    retryAfterMs: maybe(plainFunction),
    check: maybe(anyFunction),
    run: maybe(anyFunction),
    reconcile: maybe(anyFunction),
  },
  { execute: 'run', approval: 'check' },
)

/** Makes a tool that records its runs. */
export function testTool(options: TestToolOptions): TestTool {
  requireOptions('testTool', testToolOptions, options)
  const { name, effect = 'read', timeoutMs, repeats, retry, reconcile } = options
  const runs: ToolRun[] = []
  const body = options.run ?? (({ input }) => JSON.stringify(input))
  return {
    name,
    effect,
    runs,
    description: `The test tool ${name}.`,
    inputSchema: { type: 'object' },
    recovery: options.recovery ?? (effect === 'read' ? 'rerun' : 'report'),
    ...(timeoutMs !== undefined && { timeoutMs }),
    ...(repeats && { repeats }),
    ...(retry && { retry }),
    ...(reconcile && { reconcile }),
    check: options.check ?? (() => ({ kind: 'run' })),
    run: (run) =>
      new Observable((subscriber) => {
        runs.push(run)
        const end = (outcome: Outcome, text: string, more: Retryable = {}): void => {
          subscriber.next({ type: 'tool_ended', outcome, content: [{ type: 'text', text }], ...more })
          subscriber.complete()
        }
        const progress = (data: Json): void => subscriber.next({ type: 'tool_progressed', data })
        const defer = (externalId: string, deadlineMs?: number): void => {
          subscriber.next({
            type: 'tool_deferred',
            externalId,
            ...(deadlineMs !== undefined && { deadlineMs }),
          })
          subscriber.complete()
        }
        const cancelled = run.cancelled$.subscribe((reason) => end('cancelled', reason))
        const again: Retryable = {
          ...(retry && { retryable: true }),
          ...(options.retryAfterMs && { retryAfterMs: options.retryAfterMs() }),
        }
        const work = async (): Promise<string> => await body(run, { progress, defer })
        work().then(
          (text) => end('success', text),
          (error: unknown) => end('failed', String(error), again),
        )
        return () => cancelled.unsubscribe()
      }),
  }
}
