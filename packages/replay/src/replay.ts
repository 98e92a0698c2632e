import {
  type Agent,
  type Clock,
  ConfigurationError,
  type Ledger,
  type RunId,
  RunNotFoundError,
  type RunState,
  type RuntimeEvent,
} from '@tallystick/core'
import {
  judgeAnswer,
  recoverRandom,
  checkCalls,
  definedAgent,
  applyGivenModel,
  updateDefinition,
  toEvent,
  omitUndefined,
  option,
  type OptionalSchema,
  requireLedger,
  requireOptions,
  sessionAgent,
  type Stamp,
  findCause,
} from '@tallystick/core/internal'
import { decide, evolve, nextAction, recoverMessage } from '@tallystick/core/machine'
import { requireTextId } from '@tallystick/core/store-kit'
import {
  type Command,
  type EventOf,
  type EventType,
  type Fact,
  type Signal,
} from '@tallystick/core/vocabulary'
import {
  pickCurrentFields,
  type DefinitionFields,
  RecordedCheck,
  pickRecordedFields,
  type ReplayContext,
  createReplayRules,
} from './replay-context.ts'
import { type Difference, compareValues } from './diff.ts'

/** A run with missing content cannot be replayed. Throws a `ConfigurationError` if content of a run is missing. */
export function requireContent(events: readonly RuntimeEvent[]): void {
  const gone = events.find(({ removed }) => removed !== undefined)
  if (gone?.removed === undefined) return
  const { kind, by } = gone.removed
  const way = kind === 'sealed' ? ' Open the ledger with its keys.' : ' Choose a run that is whole.'
  throw new ConfigurationError(
    `Run ${gone.runId} cannot be driven again: the content of event ${gone.seq} is ${kind}${by === undefined ? '' : ` by ${by}`}.${way}`,
  )
}

/** A run that is driven again. */
interface Driven {
  readonly recorded: readonly RuntimeEvent[]
  /** How many events were given, and not decided again. */
  readonly given: number
  readonly agentNamed: (name: string) => Agent<unknown>
  readonly fields: DefinitionFields
  /** The context that the application gave the run. */
  readonly application: ReplayContext
}

/**
 * The command or signal that the next event followed from, as the facts on record say it; `undefined` if the record
 * ends before all of it was said. Whether calls may run and answers fit is asked of the agent's tools and schema as they
 * are now.
 */
async function recoverMessageAt(
  { recorded, agentNamed, fields, application }: Driven,
  state: RunState | undefined,
  index: number,
): Promise<Command | Signal | undefined> {
  const event = recorded[index] as RuntimeEvent
  const agent = agentNamed(state?.agent ?? (event.type === 'run_started' ? event.agent : ''))
  if (findCause(event) === 'calls_checked') {
    if (state?.phase !== 'collecting') return undefined
    const check = new RecordedCheck({ recorded, from: index })
    let found: Signal | undefined
    await checkCalls(
      state.calls,
      { ...check.checks(agent, application), guardrails: check.guardrails },
      {
        ...{ state, context: application.context, clock: noTimer },
        answering: (calls) => check.answers(calls),
        ...omitUndefined({ offered: state.reply.offered }),
      },
      (signal) => (found ??= signal),
    )
    return found
  }
  if (event.type === 'output_checked') {
    if (state?.phase !== 'collecting') return undefined
    const verdict = await judgeAnswer(state, { agent, clock: noTimer })
    return { type: 'output_checked', turn: state.turn, verdict }
  }
  const message = recoverMessage(state, { recorded, index })
  if (message?.type !== 'start' && message?.type !== 'resume') return message
  const given = message.type === 'start' ? message.givenModel : state?.givenModel
  const now = fields(updateDefinition(agent, message.definition), message.definition)
  return { ...message, definition: applyGivenModel(now, given) }
}

/** When the next event was decided, and by what chance. */
function recoverStamp({ recorded }: Driven, state: RunState | undefined, index: number): Stamp {
  const event = recorded[index] as RuntimeEvent
  const { at } = event
  if (state && event.type === 'tool_attempt_failed') return { at, random: recoverRandom(state, event) }
  if (state?.phase !== 'streaming' || !findCause(event).startsWith('model_')) return { at, random: 0 }
  // The usage of the attempt may be settled right before its failure.
  const failed = event.type === 'usage_updated' && event.estimated ? recorded[index + 1] : event
  return { at, random: failed?.type === 'model_stream_failed' ? recoverRandom(state, failed) : 0 }
}

/** Nothing that a replay asks may take time. */
const noTimer: Clock = { now: () => 0, schedule: () => () => {} }

const { anyFunction, fields, maybe, oneOf, valueThat } = option

/** By which definitions a run is driven again. */
export const replayDefinitions: OptionalSchema = maybe(oneOf(['today', 'recorded']))
const replayOptions = fields<ReplayOptions>({
  definitions: replayDefinitions,
  context: maybe(valueThat('anything', () => true)),
  onEvents: maybe(anyFunction),
})

/** The first place where a run that is driven again differs from its record. */
export interface Divergence {
  readonly seq: number
  /** Absent if the recording ends. */
  readonly recorded?: RuntimeEvent
  /** Absent if nothing happened. */
  readonly happened?: RuntimeEvent
  /** The differences of the two events, by path; if their types differ, only that. */
  readonly differences: readonly Difference[]
}

/** Options of `replayRun`. */
export interface ReplayOptions {
  /**
   * The definitions of the agents: those of today's code (`today`, the default), so that any changed word is a
   * difference, or those on record (`recorded`), so that only the behaviour of the code is compared.
   */
  readonly definitions?: 'today' | 'recorded' | undefined
  /**
   * The context of the run, if it had one. Without it, the recorded results of code that needs the context
   * (`prepareTurn`, `stopWhen`, checks of calls) are used instead of calling the code.
   */
  readonly context?: unknown
  /** Called with the number of events that happened again, after each decision. */
  readonly onEvents?: ((events: number) => void) | undefined
}

/** The result of driving a run again. */
export interface ReplayReport {
  readonly runId: RunId
  /** Events that happened again as they were recorded, from the first on. */
  readonly events: number
  readonly divergence?: Divergence
}

/**
 * Drives the machine and the given agent's code again with what the run received from outside: recorded model streams,
 * tool results, commands and times. Makes no model call and runs no tool; the tools' own checks, which say what runs
 * and what a person is asked, are the code of today. Reports the first event that differs.
 *
 * `agentNamed` finds the agent by its recorded name. Rejects with `RunNotFoundError` for an unknown run, and with
 * `ConfigurationError` for one of which content is gone or sealed, and for what is not an agent.
 */
export async function replayRun(
  ledger: Ledger,
  runId: RunId,
  agentNamed: (name: string) => Agent<unknown>,
  options: ReplayOptions = {},
): Promise<ReplayReport> {
  requireLedger('replayRun', ledger)
  requireTextId('replayRun', runId)
  requireOptions('replayRun', option.anyFunction, agentNamed, 'what finds the agent by its name')
  requireOptions('replayRun', replayOptions, options)
  const { definitions = 'today', onEvents, context } = options
  const recorded: RuntimeEvent[] = []
  for await (const event of ledger.read(runId)) recorded.push(event)
  const first = recorded[0]
  if (first?.type !== 'run_started') throw new RunNotFoundError(runId)
  requireContent(recorded)
  const driven: Driven = {
    recorded,
    given: countGivenEvents(first, recorded),
    agentNamed(name) {
      if (recorded.some(({ type }) => type === 'session_edited')) return sessionAgent
      const agent = agentNamed(name)
      requireOptions('replayRun', definedAgent, agent, `what was found by the name ${JSON.stringify(name)}`)
      return agent
    },
    fields: definitions === 'recorded' ? pickRecordedFields : pickCurrentFields,
    application: { context, isMissing: first.withContext === true && context === undefined },
  }
  const divergence = await driveAgain(driven, onEvents)
  if (divergence) return { runId, events: divergence.seq - 1, divergence }
  return { runId, events: recorded.length }
}

/** Drives a run again after the given events; returns the first event at which it differs. */
async function driveAgain(
  driven: Driven,
  onEvents: (events: number) => void = () => {},
): Promise<Divergence | undefined> {
  const { recorded } = driven
  let done = driven.given
  let state = recorded.slice(0, done).reduce<RunState | undefined>(evolve, undefined)
  onEvents(done)
  while (done < recorded.length) {
    const { happened, unfinished } = await decideNext(driven, state, done)
    // The record of a run that is still under way may end within a decision.
    const decided = recorded.slice(done, unfinished ? undefined : done + Math.max(1, happened.length))
    const divergence = unfinished ? undefined : findFirstDifference(decided, happened, state)
    if (divergence) return divergence
    // Times and waits are the recording's: the state continues from what was recorded.
    for (const event of decided) state = evolve(state, event)
    done += decided.length
    onEvents(decided.length)
  }
  return undefined
}

/** The events that follow now, instead of the recorded ones. */
interface Decided {
  readonly happened: readonly RuntimeEvent[]
  /** The record ends before all is said that was decided about. */
  readonly unfinished?: true
}

/**
 * Decides the next recorded events again: from the command or signal, or from what the controller finds pending, at
 * their recorded time.
 */
async function decideNext(driven: Driven, state: RunState | undefined, index: number): Promise<Decided> {
  const { recorded } = driven
  const next = recorded[index] as RuntimeEvent
  const pending = listPendingBefore(driven, state, index)
  if (pending.length > 0 || findCause(next) === 'controller') return { happened: pending }
  const message = await recoverMessageAt(driven, state, index)
  if (message === undefined)
    return { happened: [], ...(isUnfinished(recorded, index) && { unfinished: true }) }
  const decision = decide(state, message, recoverStamp(driven, state, index))
  return { happened: 'facts' in decision ? toEvents(decision.facts, next) : [] }
}

/** Types that other facts of the same decision may follow. */
const isOpening: Readonly<Record<EventType, boolean>> = {
  run_started: true,
  schedule_set: true,
  schedule_fired: false,
  history_carried: true,
  session_edited: false,
  history_edited: true,
  run_resumed: false,
  run_finished: false,
  input_received: false,
  input_settled: false,
  model_call_started: false,
  assistant_started: false,
  assistant_text_delta: true,
  assistant_reasoning_delta: true,
  tool_input_delta: false,
  tool_request_ready: true,
  usage_updated: true,
  assistant_message_finished: false,
  model_stream_failed: false,
  tool_requests_collected: false,
  approval_requested: false,
  approval_decided: false,
  approval_added: false,
  approval_applied: false,
  approval_withdrawn: false,
  tool_started: false,
  tool_progress: false,
  tool_deferred: false,
  tool_attempt_failed: false,
  tool_result: false,
  background_ended: false,
  tool_results_injected: false,
  compaction_started: false,
  context_compacted: false,
  agent_handed_off: false,
  guardrail_tripped: true,
  guardrails_checked: false,
  output_checked: false,
  limit_reached: false,
  limit_raised: false,
  cancel_requested: false,
  feedback_given: false,
}

/** Only the first facts of one decision are left on record. */
function isUnfinished(recorded: readonly RuntimeEvent[], index: number): boolean {
  const cause = findCause(recorded[index] as RuntimeEvent)
  return recorded.slice(index).every((event) => isOpening[event.type] && findCause(event) === cause)
}

/**
 * Returns the events that the controller writes before the next event: the next event itself if the controller caused
 * it, and nothing if the run rested before an input. The controller is not asked between inputs that follow each other,
 * since they may be of one append, nor for a process that was draining.
 */
function listPendingBefore(
  { recorded, given, agentNamed, fields, application }: Driven,
  state: RunState | undefined,
  index: number,
): readonly RuntimeEvent[] {
  const next = recorded[index] as RuntimeEvent
  const last = recorded[index - 1]
  if (state === undefined || last === undefined) return []
  const own = findCause(next) === 'controller'
  const restedBefore =
    index > given && !last.draining && (findCause(last) === 'controller' || next.type === 'run_resumed')
  if (!own && !restedBefore) return []
  const rules = createReplayRules(agentNamed(state.agent), application, { recorded, from: index }, fields)
  const action = nextAction(state, own ? next.at : last.at, rules)
  return 'facts' in action ? toEvents(action.facts, next) : []
}

/** Turns facts into events that replace recorded ones: writer, time and cause are taken from the record. */
function toEvents(facts: readonly Fact[], next: RuntimeEvent): readonly RuntimeEvent[] {
  const { runId, epoch, seq, at } = next
  const cause = findCause(next)
  return facts.map((fact, index) => toEvent(fact, { runId, epoch, seq: seq + index, at, cause }))
}

/** A fork begins with what another run did, and with its edits: they are given, and all of its first epoch. */
function countGivenEvents(first: EventOf<'run_started'>, recorded: readonly RuntimeEvent[]): number {
  if (first.parent?.relation !== 'fork') return 0
  const own = recorded.findIndex(({ epoch }) => epoch > first.epoch)
  return own === -1 ? recorded.length : own
}

function findFirstDifference(
  recorded: readonly RuntimeEvent[],
  happened: readonly RuntimeEvent[],
  state: RunState | undefined,
): Divergence | undefined {
  const next = recorded[0] as RuntimeEvent
  if (happened.length === 0) return { seq: next.seq, recorded: next, differences: [] }
  for (const [index, event] of happened.entries()) {
    const before = recorded[index]
    // The recording may end in the middle of what follows: a run that is still under way.
    if (before === undefined) return undefined
    const differences = compareEvents(before, event, state)
    if (differences.length > 0) return { seq: before.seq, recorded: before, happened: event, differences }
  }
  return undefined
}

function compareEvents(
  before: RuntimeEvent,
  event: RuntimeEvent,
  state: RunState | undefined,
): readonly Difference[] {
  if (before.type !== event.type) return [{ path: 'type', recorded: before.type, happened: event.type }]
  return compareValues(toComparable(before, state), toComparable(toOlderRelease(before, event), state))
}

/** Older releases did not record the digest of the input that a call starts with. */
function toOlderRelease(before: RuntimeEvent, event: RuntimeEvent): RuntimeEvent {
  if (event.type !== 'tool_started' || before.type !== 'tool_started' || before.inputDigest !== undefined)
    return event
  const { inputDigest: _unrecorded, ...rest } = event
  return rest
}

/** Leaves out time and cause, which a replay takes from the record. */
function toComparable(event: RuntimeEvent, state: RunState | undefined): object {
  const { at: _at, cause: _cause, inboxKey: _key, draining: _draining, ...rest } = event
  // A take-over records the definition if it differs from the one before, by which both are compared.
  return rest.type === 'run_resumed' ? { definition: state?.definition, ...rest } : rest
}
