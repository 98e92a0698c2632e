import { type Agent, calledModel, definedAgent, someLimits, someRecording } from '../agent/agent.ts'
import { type GivenHooks, someHooks } from '../agent/hooks.ts'
import type { ContextOption, RecordedRun } from '../agent/prepare-turn.ts'
import { type RuntimeRules, someRules } from '../agent/registry.ts'
import type { AnyContext, RecordingPolicy } from '../events/agent-definition.ts'
import type { OutsideCommand, OutsideCommandOf } from '../events/commands.ts'
import type { Message, ResultPart } from '../events/content.ts'
import { forkWrites, missedPolicies, type Schedule } from '../events/event.ts'
import type { GivenLimits } from '../events/limits.ts'
import type { ModelSettings } from '../events/model-request.ts'
import { someSettings } from '../events/model-settings-check.ts'
import type { Ledger } from '../ledger/ledger.ts'
import type { Model } from '../models/model.ts'
import { modelPrice, type Prices } from '../models/prices.ts'
import { ConfigurationError } from '../values/errors.ts'
import type { Host } from '../values/host.ts'
import type { RunId } from '../values/ids.ts'
import {
  anyFunction,
  anyObject,
  anyText,
  fields,
  filledText,
  functionOr,
  listOf,
  maybe,
  numberFrom,
  oneOf,
  type Schema,
  plainFunction,
  recordOf,
  requireOptions,
  trueOrFalse,
  valueThat,
} from '../values/option.ts'
import type { Json } from '../values/json.ts'
import { jsonObject } from '../values/schema.ts'
import { formatError } from '../values/text.ts'
import type { CommandAcknowledgement } from './commands.ts'
import type { Feedback } from './feedback.ts'
import type { DriveOptions, PostOptions, Rest } from './drive.ts'
import type { ForkEdit, ForkOptions } from './fork.ts'
import type { RunDriver } from './run-driver.ts'
import type { RunResult } from './run-result.ts'
import type { Run } from './run.ts'
import type { BranchOptions, SessionEditOptions } from './edit-session.ts'
import type { PastEdits, PastOptions, Session, SessionHistory } from './session.ts'
import {
  type GivenToolChoice,
  type InputMessage,
  type LabelOptions,
  type OnInput,
  type RunInput,
  someToolChoice,
} from './start-run.ts'

export interface RuntimeOptions extends RuntimeRules {
  readonly ledger: Ledger
  /** The agents that a resume can find by the name in the ledger. Agents passed to `run` are known as well. */
  readonly agents?: readonly Agent<unknown>[] | undefined
  /** Prices of models: by model id, or as a function. Without a price a run has no cost, and no `maxCostUsd`. */
  readonly prices?: Prices | undefined
  /**
   * Makes the context of a run that was started with one, if this process continues the run without being given it: at
   * a resume, a settling, or the end of a child run. It gets the recorded facts of the run, and may be async.
   */
  readonly contextOf?: ((run: RecordedRun) => unknown) | undefined
  /** The model of all runs that are not given one; it replaces their agents' models. */
  readonly model?: Model | undefined
  /** Model settings of all runs. The run's own override them; they override the agent's. */
  readonly modelSettings?: ModelSettings | undefined
  /** Limits of all runs. The run's own override them; they override the agent's. */
  readonly limits?: GivenLimits | undefined
  /**
   * Which of the events that nothing else depends on all runs record. The run's own setting overrides it; it overrides
   * the agent's.
   */
  readonly recording?: RecordingPolicy | undefined
  /**
   * Passes the text of replies on to `run.liveText$` as it comes, before it is on record. Off by default: for a ledger whose
   * `deltaDelayMs` is long, or runs that record no `textDeltas`.
   */
  readonly liveText?: boolean | undefined
  /** Functions that observe all runs, beside those of each run. */
  readonly hooks?: GivenHooks | undefined
  /** Models that runs are given as `model`, for a resume in this process to find them by the names on record. */
  readonly models?: readonly Model[] | undefined
  /**
   * For a resume, if the agent's code differs from the recorded definition: `continue` with the code, and record it
   * (the default), or `refuse`. A run with rules of its own continues without one of them only if `continue` is given.
   */
  readonly onDrift?: 'continue' | 'refuse' | undefined
  /** Time, timers, randomness, and the report of stray errors; each defaults to that of the host. */
  readonly host?: { readonly [Part in keyof Host]?: Host[Part] | undefined } | undefined
}

/**
 * Options of one run. Those about models and tools also apply to the agents that take over in it. Rules of the run
 * (`guardrails`, `approval`, `prepareTurn`, `outputStream`) are added to those of the runtime, filters
 * (`handoffFilter`, `nestHandoffHistory`, `handoffHistoryMapper`, `inputFilter`) replace them; child runs have neither.
 * The ledger records the name and the digest of such code: give it to a resume again.
 */
export interface RunOptions extends PastOptions, LabelOptions, RuntimeRules {
  /** Limits of this run, over those of the agent. */
  readonly limits?: GivenLimits | undefined
  /**
   * The model of this run. It replaces its agents' models; their fallbacks stay. Its name is on record: a resume finds
   * the model among the `models` of its runtime or of its agents, or has to be given it.
   */
  readonly model?: Model | undefined
  /** Model settings of this run; each overrides the agent's. */
  readonly modelSettings?: ModelSettings | undefined
  /**
   * The model must (`any`, or a tool by its name), may (`auto`) or must not (`none`) call tools. `none` and
   * `auto` hold for the whole run, `any` and a named tool for its first turn. `prepareTurn` can override it for a turn.
   */
  readonly toolChoice?: GivenToolChoice | undefined
  /** Lets the model ask for several tools in one reply, or not, whatever its agent says. */
  readonly parallelToolCalls?: boolean | undefined
  /** Which of the events that nothing else depends on the run records; it overrides its agents' settings. */
  readonly recording?: RecordingPolicy | undefined
  /**
   * Continues after a response that the provider keeps (`result.providerState` of an earlier run): the run sends only
   * its input, not the past. Not together with `conversationId` or a session.
   */
  readonly previousResponseId?: string | undefined
  /**
   * Continues a conversation that the provider keeps under this id; the provider adds the messages of this run to it.
   */
  readonly conversationId?: string | undefined
  /**
   * Decides how new input joins the history of its session: returns the messages that the run begins with, the last one
   * of the user, as in `[...history.slice(-20), input]`. Its result is on record, so that neither a resume nor a replay
   * calls it, and the session goes on from it. It may be async. Input that joins a run under way does not get here.
   */
  readonly onInput?: OnInput | undefined
  /** `false`: no traces are made of the run and its child runs, live or from the record. */
  readonly tracing?: boolean | undefined
  /** `false`: traces of the run and its child runs hold no content, whatever the exporter says. */
  readonly traceContent?: boolean | undefined
  /** Functions that observe the run. Not recorded: give them to a resume again. */
  readonly hooks?: GivenHooks | undefined
  /** Cancels the run when it is aborted. Not recorded: a resume continues without it. */
  readonly signal?: CancelSignal | undefined
  /**
   * When the run ends at the latest, as a `Date` or in milliseconds since 1970 UTC. It ends as `time_limit`, with an
   * answer if `onLimit` says so. Waiting for a person counts, unlike for `limits.maxDurationMs`. A run that waits at
   * that time ends when a process continues it.
   */
  readonly deadline?: Date | number | undefined
  /**
   * Starts the run once. Another start with the same key, in any process on the same ledger, returns that run, and
   * continues it if no process drives it. The agent, the input, the session, the subject, the owner and the given limits
   * have to be the same.
   */
  readonly idempotencyKey?: string | undefined
  /**
   * An id of the input, such as that of the chat message: `input_received` has it as its `receipt`. A session joins a run
   * with it: it is unique in the session then, a retry with the same id sends no second input and returns the run that took
   * the first, and it is generated if not given.
   */
  readonly inputId?: string | undefined
  /**
   * Whom the run is about, such as a customer, by a name that reveals nothing about them: the ledger stores it in the
   * clear. A ledger with keys encrypts what is said in the run for this subject, so that destroying the key erases
   * it. Runs of the session, branches, forks and child runs have the same subject, unless given another.
   */
  readonly subject?: string | undefined
  /**
   * Who starts the run, by the name that the application knows its callers by. It is on record, so that whatever process
   * drives the run makes the context of the one who started it, not of one who decides about it. Child runs have the same.
   */
  readonly owner?: string | undefined
}

/** Options with the context of the run, of any type. */
export type InContext<Options> = Options & { readonly context?: unknown }

/** Options with the context that an agent needs; optional if it needs none. */
export type Given<Options, Context> =
  Partial<ContextOption<Context>> extends ContextOption<Context>
    ? [options?: Options & ContextOption<Context>]
    : [options: Options & ContextOption<Context>]

/** Options for resuming a run. Rules that it was started with have to be given again. */
export interface ResumeOptions<Output = unknown, in Context = AnyContext> extends RuntimeRules {
  /** The agent that the run was started with, for the type of its output; it need not be among those of the runtime. */
  readonly agent?: Agent<Output, Context> | undefined
  /** The application's context of the run. It is not recorded, so pass it again. */
  readonly context?: unknown
  /** Functions that observe the run from here on. */
  readonly hooks?: GivenHooks | undefined
  /** The model that the run was started with, if it was given one and `createRuntime` does not know it. */
  readonly model?: Model | undefined
  /**
   * Takes the run over at once, whoever drives it. Without it, a resume follows the process that drives the run, and takes over
   * when that one's lease has ended: at once if the process has died on this machine, else within 12 seconds. Only for a process
   * that you know to be gone: if it lives, what its tools have under way may be done twice, until it learns of this.
   */
  readonly takeOver?: boolean | undefined
}

export interface SendOptions {
  /**
   * The place of the command in the run's inbox. A retry under the same key sends no second command: it rejects with
   * a `LedgerConflictError` of kind `unique`. Generated if not given.
   */
  readonly key?: string | undefined
}

export interface SessionRunOptions extends Omit<
  RunOptions,
  'sessionId' | 'whenBusy' | 'previousResponseId' | 'conversationId'
> {
  /**
   * As for `Runtime.run`; and `join`: the input goes into the run that is under way, at its next turn, and `run`
   * returns that run. It resolves when the run has shown the input to its model, or is suspended with the input on
   * record. If the run ends without showing the input, the input begins the next run of the session. So a tool must
   * not await a join of the run whose call it is.
   *
   * Joining never takes over a run whose process is gone. It rejects with a `LedgerConflictError` of kind `session`
   * once no process drives the run. If the input was sent by then, the run's inbox keeps it, `busy.inputId` of the error names it, and `resume` reads it.
   */
  readonly whenBusy?: 'conflict' | 'wait' | 'join' | undefined
}

/**
 * A conversation of a runtime. Each edit is a run of its own in the ledger, which takes a place in the session: nothing
 * is deleted, and while a run of the session is under way, an edit is refused with a `LedgerConflictError` of kind
 * `session`, or waits (`whenBusy`).
 */
export interface RuntimeSession extends Session {
  /** Adds messages to the end of the history. Input guardrails check them when the next run begins. */
  append(
    messages: InputMessage | readonly InputMessage[],
    options?: SessionEditOptions,
  ): Promise<SessionHistory | undefined>
  /** Takes the last message back, a call together with its result. Returns what was taken: nothing, if the session is empty. */
  pop(options?: SessionEditOptions): Promise<readonly Message[]>
  /** Lets the next run begin without history. Returns the messages that were taken. */
  clear(options?: SessionEditOptions): Promise<readonly Message[]>
  /**
   * Ends a standing approval between two runs, by the id of the call that was approved; while a run is under way or waits, its own
   * `withdraw` does. Returns false if the session has no such approval.
   */
  withdraw(toolCallId: string, options: SessionEditOptions & { readonly by: string }): Promise<boolean>
  /** Begins a session of another name with the history of this one, as of its last run or of an earlier event. */
  branch(sessionId: string, options?: BranchOptions): Promise<RuntimeSession>
  /** Starts its next run, or joins the one that is under way. Rejects as the result of a run does. */
  run<Output, Context>(
    agent: Agent<Output, Context>,
    input: RunInput,
    ...options: Given<SessionRunOptions, Context>
  ): Promise<Run<Output>>
}

/** When a schedule starts runs, with what, and the options of these runs. One of `cron`, `at` and `every` has to be given. */
export interface ScheduleOptions extends Omit<
  RunOptions,
  | 'sessionId'
  | 'from'
  | 'edit'
  | 'whenBusy'
  | 'mayFollow'
  | 'inputId'
  | 'idempotencyKey'
  | 'deadline'
  | 'hooks'
  | 'signal'
  | 'previousResponseId'
  | 'conversationId'
  | 'onInput'
  | keyof RuntimeRules
> {
  /** What each run is asked. */
  readonly input: RunInput
  /** Five fields: minute, hour, day of the month, month, day of the week. `0 3 * * *` is 3:00 every day. */
  readonly cron?: string | undefined
  /** Of the cron pattern, such as `Europe/Berlin`. Default: UTC, whatever the machine's. */
  readonly timeZone?: string | undefined
  /** Once, at this time: a `Date`, or milliseconds since 1970 UTC. One that has passed is due at once. */
  readonly at?: Date | number | undefined
  /** Again and again after so many milliseconds, at least 1,000, from its start on. */
  readonly every?: number | undefined
  /**
   * What becomes of the times at which no process was there to start a run for more than a minute: `skip` starts none, `once` one for all
   * of them, `each` one each, for up to 100 of them. Default: `once`.
   */
  readonly missed?: Schedule['missed'] | undefined
  /**
   * Names it in its ledger: a schedule that is set again under its name is the same one, or replaces it where anything differs. Without
   * a name, each call sets one more.
   */
  readonly name?: string | undefined
  /** Sets it, and leaves its firing to other processes: those of an engine, or a later `resume`. Default: `true`. */
  readonly drive?: boolean | undefined
}

/** A schedule as its ledger has it. Times are in milliseconds since 1970 UTC. */
export interface ScheduleRecord extends Schedule {
  /** The run that records it: `send` it `set_schedule` to pause it or go on, and `cancel` to remove it. */
  readonly scheduleId: RunId
  readonly agent: string
  readonly owner?: string
  readonly paused: boolean
  /** The next time at which it starts a run; absent if it is paused, or over. */
  readonly nextAt?: number
  /** How many runs it has started, and the last one. */
  readonly started: number
  readonly lastRun?: { readonly runId: RunId; readonly scheduledAt: number }
  /** The messages that each run begins with. */
  readonly input: readonly Message[]
  /** It was removed, or its last time has come. */
  readonly isOver: boolean
}

/** Options of an event that is sent to the runs that wait for it. */
export interface SignalOptions {
  /** Under which the event counts once: a delivery that is repeated settles no later wait. Default: each call is an event of its own. */
  readonly key?: string | undefined
  /** Who sends it, for the record. */
  readonly by?: string | undefined
  /** Drives the runs that it wakes here. Without it, wake those that are returned. Default: `true`. */
  readonly drive?: boolean | undefined
  /** Leaves out the runs for which it answers `false`. */
  readonly mayWake?: ((runId: RunId) => boolean | Promise<boolean>) | undefined
}

/** Starts runs and resumes them. */
export interface Runtime {
  /** The ledger in which it records its runs. */
  readonly ledger: Ledger
  /**
   * Starts a run; it is under way when `run` returns. In a session it begins with the history of the session. If
   * another process begins a run of the session at the same moment, one of the two gets a `LedgerConflictError`, or
   * waits.
   *
   * The input is a text, message parts, or a conversation: messages in order, of which the user said the last. Those
   * before it are recorded as the past of the run, after the history of its session, and input guardrails check them.
   *
   * `context` is what the application passes to the run: its tools, hooks, guardrails, policies and instruction
   * functions receive it, and so do those of the agents that take over or run as its tools. It is never recorded.
   */
  run<Output, Context>(
    agent: Agent<Output, Context>,
    input: RunInput,
    ...options: Given<RunOptions, Context>
  ): Run<Output>
  /**
   * Starts a run that shares the first events of another run and continues after them: with an edited message or
   * result, or another agent. As long as the fork makes the same calls, it gets their recorded results. From the
   * first call that differs on its tools run for real, and its writes run only as `writes` allows. The forked run is
   * not changed.
   */
  fork<Output, Context>(
    runId: string,
    options: ForkOptions & { readonly agent: Agent<Output, Context> } & ContextOption<Context>,
  ): Run<Output>
  fork<Output = unknown>(runId: string, options: InContext<ForkOptions>): Run<Output>
  /** A conversation: its runs, its history, its next run. It need not have begun. */
  session(sessionId: string): RuntimeSession
  /**
   * Continues a run where its ledger ends: after a suspension, a crash, or from another process. If this runtime
   * drives the run already, `resume` joins it and does not drive it twice. If another process drives it, the handle follows it
   * there: it is taken over when that process has released it, or its lease has ended (see `takeOver`). Child runs that were
   * under way are taken over with it; by a command to a run they are not. The result rejects with `RunNotFoundError`
   * for an unknown run, and with `ConfigurationError` when its agent is not known, when the run was started with a
   * context and none is given, and when it is a run of another agent than the given one.
   */
  resume<Output, Context>(
    runId: string,
    options: { readonly agent: Agent<Output, Context> } & Omit<ResumeOptions, 'agent' | 'context'> &
      ContextOption<Context>,
  ): Run<Output>
  resume<Output = unknown>(
    runId: string,
    options?: InContext<Omit<ResumeOptions, 'agent' | 'context'>>,
  ): Run<Output>
  /**
   * Sends a command to a run of any process. The process that drives the run decides about it; if none does, this
   * runtime takes the run over. A command that the run does not allow is refused, and one that is incomplete is refused as `malformed`, before anything is sent. Rejects
   * with `RunNotFoundError` for an unknown run. `ledger.put` puts a command there and waits for no decision.
   */
  send(
    runId: string,
    command: OutsideCommand,
    options?: InContext<SendOptions>,
  ): Promise<CommandAcknowledgement>
  /**
   * Settles a deferred tool call: its result is a text, parts, or an error. The run continues in this process. A call
   * that does not wait to be settled is a refusal, not an error; a second settling changes nothing. `by` and `reason` say who settled it
   * and why, for the record.
   */
  settle(
    runId: string,
    toolCallId: string,
    result: SettledResult,
    options?: InContext<
      Omit<ResumeOptions, 'agent' | 'context' | 'takeOver'> & {
        readonly by?: string | undefined
        readonly reason?: string | undefined
      }
    >,
  ): Promise<CommandAcknowledgement>
  /**
   * Records what someone says of a run after its end, long ago or in another process too: a score, a note, or both. No model
   * reads it. Refused as `not_finished` before the end of the run. Under a `key` that the run has it of, nothing changes; other
   * feedback under that key rejects with a `LedgerConflictError` of kind `unique`. Rejects with `RunNotFoundError` for an unknown run.
   */
  feedback(
    runId: string,
    feedback: Feedback,
    options?: Pick<SendOptions, 'key'>,
  ): Promise<CommandAcknowledgement>
  /**
   * Drives a run for a stretch: until it is done, waits, is parked or is handed back. For an engine that tells many processes
   * which runs to drive: what the rest says is all that it has to know. It never follows a run that another process drives: that
   * rest is `lost`. Child runs are driven with it. Rejects as the result of a run does.
   */
  drive(runId: string, options?: DriveOptions): Promise<Rest>
  /**
   * Puts a command into the inbox of a run, for the process that drives it next, and drives nothing: `wake` is the run to drive.
   * The answer says whether the run as it is on record allows the command; the driver decides in the end. A second post of a
   * command under its key changes nothing, and is accepted; another command under that key rejects with a `LedgerConflictError` of
   * kind `unique`. Rejects with `RunNotFoundError` for an unknown run.
   */
  post(
    runId: string,
    command: OutsideCommand,
    options: PostOptions,
  ): Promise<CommandAcknowledgement & { readonly wake: RunId }>
  /**
   * Records the start of a run and drives nothing: the process that drives it next makes the first model call. Resolves when the
   * start is on record. With an `idempotencyKey`, a second time changes nothing. If its session is busy, it rejects with a
   * `LedgerConflictError` of kind `session`.
   */
  enqueue<Output, Context>(
    agent: Agent<Output, Context>,
    input: RunInput,
    ...options: Given<Omit<RunOptions, 'signal' | 'hooks'>, Context>
  ): Promise<RunId>
  /**
   * Starts runs of an agent by time. The schedule is a run of its own, on record with each time that came and the run that it
   * started, and resolves once it is there. This process fires it as long as it lives; any number of processes may set the same
   * named schedule, and each time starts one run. It may be read back with `schedules`, paused and removed (`ScheduleRecord`).
   *
   * @example
   * await runtime.schedule(agent, { name: 'nightly', cron: '0 3 * * *', timeZone: 'Europe/Berlin', input: 'Sum up the day.' })
   */
  schedule<Output, Context>(
    agent: Agent<Output, Context>,
    options: ScheduleOptions & ContextOption<Context>,
  ): Promise<ScheduleRecord>
  /**
   * Sends an event to all runs that wait for it at this moment (`waitFor` of `@tallystick/tools`): its payload, a value of JSON, is the
   * result of the calls that wait. Returns the runs that it has woken, once that is on record. An event that comes before a run waits
   * for it is not kept for that.
   */
  signal(name: string, payload?: Json, options?: SignalOptions): Promise<readonly RunId[]>
  /** The schedules of the ledger that are not over. */
  schedules(): AsyncGenerator<ScheduleRecord, void, undefined>
  /**
   * The runs of the ledger that only a command can continue, and what they wait for. A child run is not listed: its
   * root run waits for the same.
   */
  suspended(): AsyncGenerator<RunResult, void, undefined>
  /**
   * The runs of the ledger that have not ended, wait for nothing, and are driven by no process, after a crash, a stop
   * or a failure of their ledger: the lease of their process has ended. `resume` continues them; until then they keep their
   * sessions busy. A child run is not listed, only its root run.
   */
  interrupted(): AsyncGenerator<RunResult, void, undefined>
  /**
   * For a stop signal. Starts nothing more, waits up to `graceMs` (5 seconds) for work in flight, stops the rest, and
   * returns the result of each run as it stopped. `resume` continues them, in any process; this runtime starts no
   * more runs and refuses commands. A run whose writer fails meanwhile is not in the result: its handle rejects with
   * the reason.
   */
  drain(graceMs?: number): Promise<readonly RunResult[]>
  /**
   * Resolves when this runtime drives no run any more: each run has stopped, and ended child runs were reported to
   * their parents, which were resumed. Close the ledger then: closing it earlier drains this runtime.
   */
  idle(): Promise<void>
}

/** How a deferred call ended: a text or parts for a success, or what went wrong. */
export type SettledResult = string | readonly ResultPart[] | { readonly failed: string }

/** An `AbortSignal`, as every JavaScript host has it. */
export interface CancelSignal {
  readonly aborted: boolean
  readonly reason?: unknown
  addEventListener(type: 'abort', listener: () => void): void
  removeEventListener(type: 'abort', listener: () => void): void
}

/** Something that can be aborted. */
export const someSignal: Schema = valueThat('an AbortSignal', (value) => {
  const { aborted, addEventListener, removeEventListener } = Object(value) as Partial<CancelSignal>
  return (
    [addEventListener, removeEventListener].every((each) => typeof each === 'function') &&
    typeof aborted === 'boolean'
  )
})

/** The command that follows from an aborted signal; `undefined` as long as it is not. */
export function toCancelCommand(signal: CancelSignal | undefined): OutsideCommandOf<'cancel'> | undefined {
  if (!signal?.aborted) return undefined
  const { reason } = signal
  if (reason === undefined) return { type: 'cancel' }
  return { type: 'cancel', reason: typeof reason === 'string' ? reason : formatError(reason) }
}

/** Cancels a run when the signal is aborted, and forgets the signal when the run has ended. */
export function cancelWith(signal: CancelSignal, driver: RunDriver): void {
  const onAbort = (): void => {
    const command = toCancelCommand(signal)
    // If a run cannot take the command, it has failed, and its handle reports that.
    if (command) driver.send(command).catch(() => {})
  }
  const leave = (): void => signal.removeEventListener('abort', onAbort)
  signal.addEventListener('abort', onAbort)
  driver.live.subscribe({
    next: ({ type }) => {
      if (type === 'run_finished') leave()
    },
    error: leave,
  })
}

const anyValue: Schema = () => undefined

export function valueHaving(expected: string, ...names: readonly string[]): Schema {
  return valueThat(expected, (value) => {
    const parts = Object(value) as { readonly [name: string]: unknown }
    return names.every((name) => typeof parts[name] === 'function')
  })
}

/** A store that runs can be written to and read from. */
export const someLedger: Schema = valueHaving(
  'a ledger, such as memoryLedger() or sqliteLedger(path)',
  ...['append', 'read', 'acquire'],
)
const clock = valueHaving('a clock with now() and schedule(delayMs, callback)', 'now', 'schedule')

export const somePrices: Schema = functionOr(recordOf(modelPrice))

export const runtimeOptions: Schema = fields<RuntimeOptions>({
  ledger: someLedger,
  agents: maybe(listOf(definedAgent)),
  prices: maybe(somePrices),
  models: maybe(listOf(calledModel)),
  model: maybe(calledModel),
  modelSettings: maybe(someSettings),
  limits: maybe(someLimits),
  recording: maybe(someRecording),
  liveText: maybe(trueOrFalse),
  hooks: maybe(someHooks),
  contextOf: maybe(anyFunction),
  ...someRules,
  onDrift: maybe(oneOf(['continue', 'refuse'])),
  host: maybe(
    fields<NonNullable<RuntimeOptions['host']>>({
      clock: maybe(clock),
      random: maybe(plainFunction),
      report: maybe(anyFunction),
      process: maybe(anyObject),
    }),
  ),
})

const edit = fields<PastEdits>({
  of: filledText,
  edits: listOf(anyObject),
  by: maybe(filledText),
  reason: maybe(anyText),
})

const from = fields<NonNullable<PastOptions['from']>>({ runId: filledText, atSeq: maybe(numberFrom(0)) })

/** The latest moment that a `Date` can say. */
const MAX_MOMENT = 8.64e15

const moment = valueThat(
  'a Date, or a whole number of milliseconds since 1970 UTC',
  (value) =>
    (value instanceof Date || typeof value === 'number') &&
    Number.isSafeInteger(Number(value)) &&
    Number(value) >= 0 &&
    Number(value) <= MAX_MOMENT,
)

const ownOptions = {
  from: maybe(from),
  edit: maybe(edit),
  limits: maybe(someLimits),
  model: maybe(calledModel),
  modelSettings: maybe(someSettings),
  toolChoice: maybe(someToolChoice),
  parallelToolCalls: maybe(trueOrFalse),
  recording: maybe(someRecording),
  signal: maybe(someSignal),
  hooks: maybe(someHooks),
  ...someRules,
  tracing: maybe(trueOrFalse),
  traceContent: maybe(trueOrFalse),
  onInput: maybe(anyFunction),
  idempotencyKey: maybe(filledText),
  deadline: maybe(moment),
  workflowName: maybe(filledText),
  traceId: maybe(filledText),
  groupId: maybe(filledText),
  tags: maybe(listOf(filledText)),
  metadata: maybe(valueThat('an object of JSON', (value) => jsonObject(value) === undefined)),
  subject: maybe(filledText),
  owner: maybe(filledText),
  inputId: maybe(filledText),
  mayFollow: maybe(anyFunction),
  context: maybe(anyValue),
} as const

const runNames = {
  ctx: 'context',
  deps: 'context',
  maxTurns: 'limits.maxTurns',
  maxSteps: 'limits.maxTurns',
  userId: 'subject',
  temperature: 'modelSettings.temperature',
  topP: 'modelSettings.topP',
  seed: 'modelSettings.seed',
  stop: 'modelSettings.stop',
  providerOptions: 'modelSettings.providerOptions',
  runName: 'workflowName',
  runId: 'idempotencyKey',
  run_id: 'idempotencyKey',
  configurable: 'context',
  recursionLimit: 'limits.maxTurns',
  inputGuardrails: 'guardrails',
  outputGuardrails: 'guardrails',
  handoffInputFilter: 'handoffFilter',
  callModelInputFilter: 'inputFilter',
  tracingDisabled: 'tracing',
  traceIncludeSensitiveData: 'traceContent',
  traceMetadata: 'metadata',
  sessionInputCallback: 'onInput',
}

const runOptions = fields<InContext<RunOptions>>(
  {
    ...ownOptions,
    sessionId: maybe(filledText),
    whenBusy: maybe(oneOf(['conflict', 'wait'])),
    previousResponseId: maybe(filledText),
    conversationId: maybe(filledText),
  },
  { ...runNames, threadId: 'sessionId', thread: 'sessionId' },
)

export const sessionRunOptions: Schema = fields<InContext<SessionRunOptions>>(
  { ...ownOptions, whenBusy: maybe(oneOf(['conflict', 'wait', 'join'])) },
  runNames,
)

/** Names an event: a text of one line that is not empty. */
export const eventName: Schema = valueThat(
  'a name of at most 200 characters in one line, with no space at its ends, such as order-17-paid',
  (value) => typeof value === 'string' && /^\S(?:.{0,198}\S)?$/.test(value),
)

export const signalOptions: Schema = fields<SignalOptions>(
  {
    key: maybe(filledText),
    by: maybe(filledText),
    drive: maybe(trueOrFalse),
    mayWake: maybe(anyFunction),
  },
  { id: 'key', idempotencyKey: 'key' },
)

export const scheduleOptions: Schema = fields<InContext<ScheduleOptions>>(
  {
    limits: ownOptions.limits,
    model: ownOptions.model,
    modelSettings: ownOptions.modelSettings,
    toolChoice: ownOptions.toolChoice,
    parallelToolCalls: ownOptions.parallelToolCalls,
    recording: ownOptions.recording,
    workflowName: ownOptions.workflowName,
    traceId: ownOptions.traceId,
    groupId: ownOptions.groupId,
    tags: ownOptions.tags,
    metadata: ownOptions.metadata,
    subject: ownOptions.subject,
    owner: ownOptions.owner,
    tracing: ownOptions.tracing,
    traceContent: ownOptions.traceContent,
    context: ownOptions.context,
    input: anyValue,
    cron: maybe(filledText),
    timeZone: maybe(filledText),
    at: maybe(moment),
    every: maybe(numberFrom(1_000, { whole: true })),
    missed: maybe(oneOf(missedPolicies)),
    name: maybe(filledText),
    drive: maybe(trueOrFalse),
  },
  {
    ...{ ...runNames, timezone: 'timeZone', tz: 'timeZone', everyMs: 'every', idempotencyKey: 'name' },
    // Any process may start the runs of a schedule, and no ledger holds code.
    ...Object.fromEntries(
      [...Object.keys(someRules), 'hooks'].map((name) => [name, `${name} of createRuntime`]),
    ),
  },
)

/** Refuses options that no run could be started with. */
export function requireRunOptions(options: RunOptions): void {
  requireOptions('run', runOptions, options)
  if (options.onInput && options.edit) {
    throw new ConfigurationError(
      'run: it was given onInput together with edit, whose places are those of the history before onInput has changed it. Give one of the two.',
    )
  }
  const { sessionId, from: past, previousResponseId, conversationId } = options
  if ((sessionId ?? past) === undefined || (previousResponseId ?? conversationId) === undefined) return
  const [mine, theirs] = [
    sessionId === undefined ? 'from' : 'sessionId',
    conversationId === undefined ? 'previousResponseId' : 'conversationId',
  ]
  throw new ConfigurationError(
    `run: it was given ${mine} together with ${theirs}, so the model would see the past twice: from the ledger, and from the provider. Give one of the two.`,
  )
}

const forkEdit = fields<ForkEdit>({
  input: maybe(anyValue),
  history: maybe(listOf(anyObject)),
  results: maybe(
    listOf(
      fields<NonNullable<ForkEdit['results']>[number]>({
        toolCallId: filledText,
        content: anyValue,
        outcome: maybe(oneOf(['success', 'failed'])),
      }),
    ),
  ),
  approvals: maybe(
    listOf(
      fields<{
        toolCallId: string
        by: string
        approved: boolean
        input?: object | undefined
        reason?: string | undefined
      }>({
        toolCallId: filledText,
        by: filledText,
        approved: trueOrFalse,
        input: maybe(anyObject),
        reason: maybe(anyText),
      }),
    ),
  ),
  by: maybe(anyText),
  reason: maybe(anyText),
})

export const forkOptions: Schema = fields<InContext<ForkOptions>>(
  {
    atSeq: numberFrom(0, { whole: true }),
    edit: maybe(forkEdit),
    agent: maybe(definedAgent),
    sessionId: maybe(filledText),
    writes: maybe(oneOf(forkWrites)),
    owner: maybe(filledText),
    mayFollow: maybe(anyFunction),
    context: maybe(anyValue),
    ...someRules,
  },
  { input: 'edit.input', results: 'edit.results' },
)

const continued = {
  agent: maybe(definedAgent),
  context: maybe(anyValue),
  model: maybe(calledModel),
  hooks: maybe(someHooks),
  ...someRules,
}

export const resumeOptions: Schema = fields<ResumeOptions>({
  takeOver: maybe(trueOrFalse),
  ...continued,
})

export const settleOptions: Schema = fields<
  Omit<ResumeOptions, 'takeOver'> & { readonly by?: string | undefined; readonly reason?: string | undefined }
>({ ...continued, by: maybe(filledText), reason: maybe(anyText) })

const failure = fields<{ readonly failed: string }>({ failed: anyText })
const parts = listOf(anyObject)
const aText = valueThat('a text, a list of parts, or { failed: text }', (value) => typeof value === 'string')

export const settledResult: Schema = (value) => {
  if (Array.isArray(value)) return parts(value)
  const isFailure = typeof value === 'object' && value !== null && 'failed' in value
  return isFailure ? failure(value) : aText(value)
}

export const sendOptions: Schema = fields<InContext<SendOptions>>({
  key: maybe(filledText),
  context: maybe(anyValue),
})

export const feedbackOptions: Schema = fields<Pick<SendOptions, 'key'>>({ key: maybe(filledText) })

/** For functions without options: any that are given would be ignored in silence. */
export const noOptions: Schema = valueThat('nothing: it takes no options', (value) => value === undefined)
