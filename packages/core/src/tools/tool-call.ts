import { formatFault, type Fault } from '../values/schema.ts'
import { type Observable, type Observer, of, type Subscriber } from 'rxjs'
import type { AnyContext } from '../events/agent-definition.ts'
import type { Outcome, ResultPart } from '../events/content.ts'
import { readResultName } from '../events/model-request.ts'
import {
  type Reconciliation,
  reconciliationSchema,
  type Retryable,
  type Signal,
  type ToolSignal,
  toolSignalSchema,
} from '../events/signals.ts'
import { toTextContent } from '../machine/calls.ts'
import type { Call } from '../machine/state.ts'
import { answerInTime, late } from '../values/answer-in-time.ts'
import type { Cancel, Clock, Host } from '../values/host.ts'
import { deriveIdempotencyKey, type ToolCallId } from '../values/ids.ts'
import { omitUndefined } from '../values/json.ts'
import { GuardedSubscriber, IsolatedObservable } from '../values/observables.ts'
import { formatErrorStack, formatError } from '../values/text.ts'
import type { CallContext, Tool, ToolRun } from './tool.ts'

/** The time that one attempt of a call has: `timeoutMs` at most, and `quietMs` without a report. Calls back once, with the reason. */
export class AttemptTime {
  readonly #clock: Pick<Clock, 'schedule'>
  readonly #quietMs: number | undefined
  readonly #onOver: (reason: string) => void
  #isOver = false
  #stopTimer: Cancel | undefined
  #stopQuietTimer: Cancel | undefined

  constructor(
    clock: Pick<Clock, 'schedule'>,
    { timeoutMs, quietMs }: Pick<Tool, 'timeoutMs' | 'quietMs'>,
    onOver: (reason: string) => void,
  ) {
    this.#clock = clock
    this.#quietMs = quietMs
    this.#onOver = onOver
    if (timeoutMs !== undefined)
      this.#stopTimer = clock.schedule(timeoutMs, () => this.#over('The tool took too long.'))
    this.onReport()
  }

  /** The tool has reported progress. */
  onReport(): void {
    if (this.#quietMs === undefined || this.#isOver) return
    this.#stopQuietTimer?.()
    const over = (): void => this.#over('The tool reported no progress for too long.')
    this.#stopQuietTimer = this.#clock.schedule(this.#quietMs, over)
  }

  /** Calls back after a last time, which no report prolongs. */
  last(ms: number, callback: () => void): void {
    this.stop()
    this.#stopTimer = this.#clock.schedule(ms, callback)
  }

  stop(): void {
    this.#isOver = true
    this.#stopTimer?.()
    this.#stopQuietTimer?.()
  }

  #over(reason: string): void {
    this.stop()
    this.#onOver(reason)
  }
}

/** Asks a running tool to stop, once. */
export class StopRequest {
  /** Why the tool is to stop, for each subscriber, however late. A subscriber that throws is let go, and the others still get it. */
  readonly reason$: Observable<string>
  readonly #subscribers = new Set<Subscriber<string>>()
  #reason: string | undefined

  /** `threw` gets what a subscriber throws. */
  constructor(threw: (error: unknown) => void) {
    this.reason$ = new IsolatedObservable({ onThrow: threw, onUnhandledError: threw }, (subscriber) => {
      if (this.#reason !== undefined) return subscriber.next(this.#reason)
      this.#subscribers.add(subscriber)
      return () => this.#subscribers.delete(subscriber)
    })
  }

  ask(reason: string): void {
    if (this.#reason !== undefined) return
    this.#reason = reason
    for (const subscriber of this.#subscribers) subscriber.next(reason)
  }
}

type Post = (signal: Signal) => void

/** Facts that an ending may have beside its outcome and content. */
type More = Retryable & { readonly projected?: readonly ResultPart[]; readonly error?: string }

/** A running tool: the runtime can ask it to stop, and can give it up. */
export interface RunningTool {
  cancel(reason: string): void
  stop(): void
}

export interface ToolStart {
  /** Absent if the agent has no tool any more that is the one whose call was checked. */
  readonly tool: Tool | undefined
  readonly call: Call
  readonly context: CallContext<AnyContext> & Pick<ToolRun, 'messages' | 'left'>
  readonly host: Pick<Host, 'clock' | 'report'>
  /** How long an overdue write may continue after it was asked to stop, in milliseconds. */
  readonly graceMs?: number
}

/** Outcomes that a tool itself may report; the others are the runtime's to give. */
const reportable: ReadonlySet<Outcome> = new Set([
  'success',
  'failed',
  'timed_out',
  'cancelled',
  'invalid_input',
  // The tool lost sight of what it had started, such as a call of a server that died.
  'interrupted',
])

/**
 * Runs one call of a tool and posts what it reports. Whatever the tool does, exactly one `tool_ended` or `tool_deferred` is
 * posted, last; unless it is abandoned first; afterwards its signals are ignored.
 */
export function startTool(start: ToolStart, post: Post): RunningTool {
  return new ToolAttempt(start, post)
}

/** A call that runs. It observes the reports of its tool. Thousands may be under way at once: what only some need is made when they do. */
class ToolAttempt implements RunningTool, Observer<ToolSignal> {
  readonly #call: Call
  readonly #host: Pick<Host, 'clock' | 'report'>
  readonly #graceMs: number
  readonly #post: Post
  readonly #startedAt: number
  readonly #stopRequest: StopRequest
  readonly #time: AttemptTime
  readonly #reports: GuardedSubscriber<ToolSignal>
  #ended = false
  #timedOut = false

  constructor({ tool: own, call, context, host, graceMs = 0 }: ToolStart, post: Post) {
    const { clock, report } = host
    const tool = own ?? createMissingTool(call.name)
    this.#call = call
    this.#host = host
    this.#graceMs = graceMs
    this.#post = post
    this.#startedAt = clock.now()
    this.#stopRequest = new StopRequest((error) =>
      report(error, `The tool ${call.name} threw when it was cancelled`),
    )
    this.#reports = new GuardedSubscriber<ToolSignal>(this)
    this.#time = new AttemptTime(clock, tool, (reason) => this.#timeOut(reason))
    const { runId, toolCallId } = context
    const idempotencyKey = deriveIdempotencyKey(runId, toolCallId)
    const cancelled$ = this.#stopRequest.reason$
    const { input, attempts: attempt } = call
    try {
      const answer = tool.run({ ...context, input, attempt, idempotencyKey, cancelled$ })
      if (!this.#reports.follow(answer))
        this.#fail(`The tool broke its contract: its run did not return an Observable. ${mayHaveActed}`)
    } catch (error) {
      this.error(error)
    }
  }

  cancel(reason: string): void {
    this.#stopRequest.ask(reason)
  }

  /** Gives it up: nothing that it does counts any more. */
  stop(): void {
    this.#ended = true
    this.#time.stop()
    this.#reports.unsubscribe()
  }

  onCleanupFault(error: unknown): void {
    this.#host.report(error, `The tool ${this.#call.name} threw when it was abandoned`)
  }

  next(signal: ToolSignal): void {
    if (this.#ended) return
    const { toolCallId, attempts: attempt } = this.#call
    const fault = toolSignalSchema(signal)
    if (signal?.type === 'tool_progressed') {
      this.#time.onReport()
      // Progress decides nothing: a report that cannot be kept must not cost the result. What was spent must be kept.
      if (fault && signal.spent !== undefined) return this.#fail(describeBreach(signal, fault))
      const { data, spent } = signal
      if (!fault)
        this.#post({ type: 'tool_progressed', toolCallId, attempt, data, ...omitUndefined({ spent }) })
      return
    }
    if (fault) return this.#fail(describeBreach(signal, fault))
    if (signal.type === 'tool_deferred') {
      this.stop()
      const { externalId, deadlineMs } = signal
      return this.#post({
        type: 'tool_deferred',
        toolCallId,
        attempt,
        externalId,
        ...omitUndefined({ deadlineMs }),
      })
    }
    if (!reportable.has(signal.outcome)) {
      return this.#fail(`The tool reported the outcome ${signal.outcome}, which a tool cannot report.`)
    }
    const { outcome, content, projected, retryable, retryAfterMs } = signal
    const error = 'thrown' in signal ? this.#report(signal.thrown) : undefined
    if (this.#timedOut && outcome === 'cancelled') return this.#end('timed_out', content, this.#again)
    this.#end(outcome, content, omitUndefined({ projected, retryable, retryAfterMs, error }))
  }

  error(error: unknown): void {
    if (this.#ended) return
    this.#fail(`The tool failed: ${formatError(error)}`, { ...this.#again, error: this.#report(error) })
  }

  /** Tells the host of an exception of the tool; returns its stack for the record. */
  #report(thrown: unknown): string {
    const { name, toolCallId } = this.#call
    this.#host.report(thrown, `The tool ${name} threw (call ${toolCallId})`)
    return formatErrorStack(thrown)
  }

  complete(): void {
    this.#fail('The tool ended without a result.')
  }

  /** Marks an attempt as retryable if the call allows a retry. */
  get #again(): Retryable {
    return this.#call.retry ? { retryable: true } : {}
  }

  #fail(text: string, more?: More): void {
    this.#end('failed', toTextContent('failed', text), more)
  }

  #end(outcome: Outcome, content: readonly ResultPart[], more: More = {}): void {
    if (this.#ended) return
    this.stop()
    const { toolCallId, attempts: attempt } = this.#call
    const durationMs = this.#host.clock.now() - this.#startedAt
    this.#post({ type: 'tool_ended', toolCallId, attempt, outcome, content, durationMs, ...more })
  }

  #timeOut(reason: string): void {
    this.#timedOut = true
    this.#stopRequest.ask(reason)
    // A write is at work until it has ended: the next one must not begin beside it.
    const isLeft = this.#call.effect !== 'read' && this.#graceMs > 0
    if (!isLeft) this.#giveUp()
    else if (!this.#ended) this.#time.last(this.#graceMs, () => this.#giveUp())
  }

  #giveUp(): void {
    this.#end('timed_out', toTextContent('timed_out'), this.#again)
  }
}

/** Stands for a tool that the agent's code does not have any more. */
function createMissingTool(name: string): Pick<Tool, 'run' | 'timeoutMs' | 'quietMs'> {
  const text = `The tool ${name} is not there any more as it was when this call was checked. Nothing was run.`
  return {
    run: () => of({ type: 'tool_ended', outcome: 'failed', content: toTextContent('failed', text) }),
  }
}

const mayHaveActed = 'It may have taken effect all the same.'

/** Tools may be written without a compiler; what they got wrong, the model reads. */
function describeBreach(signal: ToolSignal, fault: Fault): string {
  const type = typeof signal?.type === 'string' ? signal.type : 'something'
  return `The tool broke its contract: it reported ${type} that is not sound: ${formatFault(fault)}. ${mayHaveActed}`
}

/** Asks the outside world about a call in doubt, and posts one `call_reconciled`; without an answer in time there is no finding. */
export async function reconcileCall({ tool, call, context, host }: ToolStart, post: Post): Promise<void> {
  const { toolCallId } = context
  const idempotencyKey = deriveIdempotencyKey(context.runId, toolCallId)
  const run = { ...context, input: call.input, attempt: call.attempts, idempotencyKey }
  let finding: Reconciliation = { state: 'unknown' }
  try {
    const found = await answerInTime(() => tool?.reconcile?.(run), host.clock, tool?.timeoutMs)
    if (found !== late && found !== undefined && reconciliationSchema(found) === undefined) finding = found
  } catch (error) {
    // The call stays in doubt: the finding is unknown.
    host.report(error, `The tool ${call.name} failed to reconcile call ${toolCallId}`)
  }
  post({ type: 'call_reconciled', toolCallId, finding })
}

/** How a result is shown. */
export interface Showing {
  /** The most characters of text; no limit where `undefined`. */
  readonly max: number | undefined
  readonly toolCallId: ToolCallId
  /** True if the agent has a tool that reads the rest. */
  readonly isReadable: boolean
}

/** The share of the shown text that the beginning gets. The end gets the rest: it often holds errors and totals. */
const HEAD_SHARE = 3 / 4

/**
 * A result as the model is shown it: the same parts where its texts are short enough, else their beginning and their end,
 * and between them what was left out and how to get it. Images and files stay.
 */
export function shortenResult(content: readonly ResultPart[], showing: Showing): readonly ResultPart[] {
  const { max = Infinity } = showing
  const length = measureLength(content)
  if (length <= max) return content
  const headEnd = findWholeCharacter(content, Math.floor(max * HEAD_SHARE))
  const tailStart = findWholeCharacter(content, length - (max - headEnd))
  const note = formatOmission({ headEnd, tailStart, length }, showing)
  const shown: ResultPart[] = []
  let place = 0
  let isNoted = false
  for (const part of content) {
    if (part.type !== 'text') {
      shown.push(part)
      continue
    }
    const { text } = part
    const isCut = place + text.length > headEnd && place < tailStart
    const head = text.slice(0, Math.max(0, headEnd - place))
    // A text that is cut begins before this place.
    const tail = text.slice(tailStart - place)
    const shortened = isCut ? `${head}${isNoted ? '' : note}${tail}` : text
    place += text.length
    isNoted ||= isCut
    if (shortened !== '') shown.push({ ...part, text: shortened })
  }
  return shown
}

/** Returns true if a result has more characters of text than this. */
export function isLonger(content: readonly ResultPart[], max: number = Infinity): boolean {
  return measureLength(content) > max
}

function measureLength(content: readonly ResultPart[]): number {
  return content.reduce((sum, part) => sum + (part.type === 'text' ? part.text.length : 0), 0)
}

/** The same place in the texts, or the one before it where it would cut a character in two. */
function findWholeCharacter(content: readonly ResultPart[], place: number): number {
  let from = 0
  for (const part of content) {
    if (part.type !== 'text') continue
    const at = place - from
    if (at > 0 && at < part.text.length) {
      return (part.text.codePointAt(at - 1) ?? 0) > 0xffff ? place - 1 : place
    }
    from += part.text.length
  }
  return place
}

function formatOmission(
  {
    headEnd,
    tailStart,
    length,
  }: { readonly headEnd: number; readonly tailStart: number; readonly length: number },
  { toolCallId, isReadable }: Showing,
): string {
  const how = isReadable
    ? `Read on with ${readResultName}: {"call":"${toolCallId}","from":${headEnd}}.`
    : 'Ask for a smaller part if you need them.'
  return `\n[${tailStart - headEnd} of ${length} characters are left out here, from ${headEnd} to ${tailStart}. ${how}]\n`
}
