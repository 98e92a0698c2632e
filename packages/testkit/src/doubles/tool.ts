import { merge, NEVER, Observable, Subject, type Subscription } from 'rxjs'
import { type Clock, joinText, type Tool } from '@tallystick/core'
import {
  AttemptTime,
  defaultHost,
  valueHaving,
  isUnfit,
  offeredTool,
  omitUndefined,
  option,
  type OrUndefined,
  recoveries,
  askRepair,
  requireOptions,
  type Retryable,
  retryPolicy,
  someRepeats,
  toTextContent,
  toolEffects,
} from '@tallystick/core/internal'
import {
  type CallContext,
  type CallVerdict,
  defaultLimits,
  type Json,
  type JsonObject,
  type Outcome,
  type Reconciliation,
  type Recovery,
  type Repeats,
  type ResultPart,
  type RetryPolicy,
  type ToolEffect,
  type ToolRun,
  type ToolSignal,
} from '@tallystick/core/vocabulary'
import { sampleCallId, sampleRunId } from '../samples/values.ts'

const { anyFunction, anyObject, fields, filledText, maybe, milliseconds, numberFrom, oneOf, plainFunction } =
  option

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
  readonly repeats?: Repeats | undefined
  readonly check?: ((input: JsonObject) => CallVerdict | Promise<CallVerdict>) | undefined
  /**
   * The work of the tool. A returned text is its success, a thrown error its failure; a promise that never settles hangs.
   */
  readonly run?: ((run: ToolRun, report: TestReport) => string | Promise<string>) | undefined
  readonly reconcile?: ((run: Omit<ToolRun, 'cancelled$'>) => Promise<Reconciliation>) | undefined
}

/** Reports of a test tool besides its result. */
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
    repeats: maybe(someRepeats),
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
    ...omitUndefined({ timeoutMs, repeats, retry, reconcile }),
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
          subscriber.next({ type: 'tool_deferred', externalId, ...omitUndefined({ deadlineMs }) })
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

export interface CalledTool {
  /** How the call ended. With `deferred`, its result comes later, and the following fields are empty. */
  readonly outcome: Outcome | 'deferred'
  /** The result for the model, as one text. */
  readonly text: string
  /** The result for the model in parts: texts, images, files. */
  readonly content: readonly ResultPart[]
  /** The progress that the tool reported. */
  readonly progress: readonly Json[]
  /**
   * True if a runtime would have waited for an approval, and why, if the tool says so. `callTool` made the call all the
   * same.
   */
  readonly asksApproval: boolean
  readonly approvalReason?: string
  /** The external id of a deferred call. */
  readonly externalId?: string
}

/** The arguments of a call that a runtime provides, and the clock that measures its time. */
type Given<Context> = Omit<ToolRun<Context>, 'input'> & { readonly clock: Pick<Clock, 'schedule'> }

/** Replacements for what a runtime gives a call; the context is required if the tool needs one. */
type Lent<Context> = undefined extends Context
  ? [run?: OrUndefined<Partial<Given<Context>>>]
  : [run: OrUndefined<Partial<Omit<Given<Context>, 'context'>>> & { readonly context: Context }]

const lentParts = fields<OrUndefined<Partial<Given<unknown>>>>(
  {
    runId: maybe(filledText),
    turn: maybe(numberFrom(1, { whole: true })),
    toolCallId: maybe(filledText),
    context: maybe(() => undefined),
    attempt: maybe(numberFrom(1, { whole: true })),
    idempotencyKey: maybe(filledText),
    cancelled$: maybe(valueHaving('an observable that emits a reason', 'subscribe')),
    messages: maybe(anyFunction),
    left: maybe(anyFunction),
    clock: maybe(valueHaving('a clock, such as manualClock()', 'schedule')),
  },
  { signal: 'cancelled$', abortSignal: 'cancelled$' },
)

/**
 * Makes one call of a tool, without an agent, a model or a ledger, as a runtime makes it: it checks the input first,
 * and runs nothing if the input is refused. `run` replaces what a runtime gives the call, such as `context`,
 * `idempotencyKey`, `attempt`, or a `cancelled$` that emits a reason. A call that takes longer than the `timeoutMs` or
 * `quietMs` of its tool is asked to stop, and ends as `timed_out`: a write after the runtime's default `graceMs` at the latest.
 * `clock` measures these times, such as a `manualClock()`.
 *
 * Rejects if the tool breaks the contract of its port: it errors, or it completes without exactly one ending.
 */
export async function callTool<Context>(
  tool: Tool<Context>,
  asked: JsonObject,
  ...[given = {}]: Lent<Context>
): Promise<CalledTool> {
  requireOptions('callTool', offeredTool, tool, 'the tool')
  requireOptions('callTool', anyObject, asked, 'the input')
  requireOptions('callTool', lentParts, given)
  const { clock = defaultHost.clock, ...run } = omitUndefined({ ...given })
  const runId = run.runId ?? sampleRunId(1)
  const context = {
    turn: 1,
    toolCallId: sampleCallId(runId),
    context: undefined,
    ...run,
    runId,
  } as CallContext<Context>
  const { input, verdict } = await checkTool(tool, asked, context)
  if (verdict.kind === 'refuse') {
    const content: readonly ResultPart[] = [{ type: 'text', text: verdict.text }]
    return { outcome: verdict.outcome, text: verdict.text, content, progress: [], asksApproval: false }
  }
  const lent = { attempt: 1, idempotencyKey: context.toolCallId, cancelled$: NEVER, ...run }
  const signals = await collectSignals(tool, { ...context, ...lent, input }, clock)
  return {
    ...findEnding(tool.name, signals),
    progress: signals.flatMap((signal) => (signal.type === 'tool_progressed' ? [signal.data] : [])),
    asksApproval: verdict.kind === 'ask',
    ...(verdict.kind === 'ask' && verdict.reason !== undefined && { approvalReason: verdict.reason }),
  }
}

/** All that the tool reports in its time, as a runtime takes it. */
function collectSignals<Context>(
  tool: Tool<Context>,
  run: ToolRun<Context>,
  clock: Pick<Clock, 'schedule'>,
): Promise<readonly ToolSignal[]> {
  return new Promise((resolve, reject) => {
    const signals: ToolSignal[] = []
    const overdue$ = new Subject<string>()
    let reports: Subscription | undefined
    let isOverdue = false
    const giveUp = (): void => {
      signals.push({ type: 'tool_ended', outcome: 'timed_out', content: toTextContent('timed_out') })
      end()
    }
    const time = new AttemptTime(clock, tool, (reason) => {
      isOverdue = true
      overdue$.next(reason)
      if (reports?.closed) return
      if (tool.effect === 'read') giveUp()
      else time.last(defaultLimits.graceMs, giveUp)
    })
    const end = (): void => {
      time.stop()
      reports?.unsubscribe()
      resolve(signals)
    }
    reports = tool.run({ ...run, cancelled$: merge(run.cancelled$, overdue$) }).subscribe({
      next: (signal) => {
        const isStopped = isOverdue && signal.type === 'tool_ended' && signal.outcome === 'cancelled'
        signals.push(isStopped ? { ...signal, outcome: 'timed_out' } : signal)
        if (signal.type === 'tool_progressed') time.onReport()
        else time.stop()
      },
      error: (error) => {
        time.stop()
        reject(error)
      },
      complete: end,
    })
  })
}

/** The check of an input: of what the tool makes of it, where that is repaired and fits. */
async function checkTool<Context>(
  tool: Tool<Context>,
  input: JsonObject,
  context: CallContext<Context>,
): Promise<{ readonly input: JsonObject; readonly verdict: CallVerdict }> {
  const verdict = await tool.check(input, context)
  const repaired = isUnfit(verdict) ? askRepair(tool, { toolCallId: context.toolCallId, input }) : undefined
  if (repaired === undefined) return { input, verdict }
  const again = await tool.check(repaired.input, context)
  return isUnfit(again) ? { input, verdict } : { input: repaired.input, verdict: again }
}

function findEnding(
  name: string,
  signals: readonly ToolSignal[],
): Pick<CalledTool, 'outcome' | 'text' | 'content' | 'externalId'> {
  const endings = signals.filter(({ type }) => type !== 'tool_progressed')
  const [ending] = endings
  if (ending === undefined || ending.type === 'tool_progressed' || endings.length > 1) {
    throw new Error(
      `The tool ${name} reported ${endings.length} endings of one call. A call has exactly one: report it last, and complete.`,
    )
  }
  if (ending.type === 'tool_deferred') {
    return { outcome: 'deferred', text: '', content: [], externalId: ending.externalId }
  }
  return { outcome: ending.outcome, text: joinText(ending.content), content: ending.content }
}
