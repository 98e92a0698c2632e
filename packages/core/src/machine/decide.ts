import type {
  Command,
  FeedbackCommand,
  OutsideCommand,
  OutsideCommandOf,
  ResumeCommand,
  StartCommand,
} from '../events/commands.ts'
import {
  findCause,
  type EventOf,
  type EventType,
  type Fact,
  type FactOf,
  type RuntimeEvent,
} from '../events/event.ts'
import { computeDigest } from '../values/digest.ts'
import { isSameJson, type Json, omitUndefined } from '../values/json.ts'
import { describeChangedInput } from './request.ts'
import {
  type Decision,
  describeFinished,
  nothing,
  type RecordedPosition,
  type Refusal,
  refuse,
  type SignalRules,
  type Stamp,
} from './rules.ts'
import { pickSchedule, setSchedule } from './schedule.ts'
import { areEnough, carryStanding, refuseApprover } from './approvals.ts'
import type { RunState } from './state.ts'
import { findCall, openTurnCalls } from './calls.ts'
import type { Cause } from '../events/event-parts.ts'
import { findBound } from '../events/limits.ts'
import { correctMediaTypes, correctMessage } from '../events/content.ts'
import { type AgentDefinition, pickGiven } from '../events/agent-definition.ts'
import { settleUsage } from './budget.ts'
import type { Signal } from '../events/signals.ts'
import { checkSignals, modelSignals, toolSignals } from './decide-signals.ts'

type DecisionCommand = OutsideCommandOf<'approve' | 'deny'>

/**
 * Law 13: a decision is bound to its call, its attempt and the input that was shown, and decides once. An approval with
 * an input of its own records that input, which will run.
 */
function decideApproval(state: RunState, command: DecisionCommand, at: number): Decision {
  const { by, via, reason } = command
  const call = findCall(state, command.toolCallId)
  if (call === undefined) {
    return refuse(
      'unknown_call',
      `Run ${state.runId} has no open tool call ${command.toolCallId}; show the run to see which wait.`,
    )
  }
  const { toolCallId, attempts, inputDigest } = call
  if (call.status !== 'awaiting_approval' || inputDigest === undefined) {
    return refuse(
      'not_awaiting_approval',
      `Tool call ${toolCallId} does not wait for an approval; it is ${call.status}. Show the run to see which calls wait.`,
    )
  }
  if (call.inputRemoved) {
    return refuse(
      'not_awaiting_approval',
      `The input of tool call ${toolCallId} was removed from the record, so nobody can decide about it: it is not run. Resume the run, which then continues without it.`,
    )
  }
  if (call.expiresAt !== undefined && at >= call.expiresAt) {
    return refuse(
      'approval_expired',
      `The time to decide about tool call ${toolCallId} is over; the call counts as denied. To have it made, ask the run for it again.`,
    )
  }
  const { attempt = 1, inputDigest: shown = inputDigest } = command
  if (attempt !== attempts + 1 || shown !== inputDigest) {
    return refuse(
      'not_awaiting_approval',
      `This decision is about start ${attempt} of tool call ${toolCallId} and what was shown then. Start ${attempts + 1} ` +
        'is asked about now. Look at the pending approval, and decide with its attempt and input digest.',
    )
  }
  const { roles } = command
  const question = { turn: state.turn, toolCallId, attempt, by, inputDigest }
  const details = omitUndefined({ via, reason, roles })
  if (command.type === 'deny')
    return { facts: [{ type: 'approval_decided', ...question, approved: false, ...details }] }
  const person = { by, ...omitUndefined({ roles }) }
  const refused = refuseApprover(state, call, person)
  if (refused) return refused
  const { approvers, approvals = [] } = call
  const { standing } = command
  // The same input changes nothing.
  const isChanged = command.input !== undefined && computeDigest(command.input) !== computeDigest(call.input)
  const isLast = areEnough(approvers, [...approvals, person])
  if ((isChanged || standing) && (!isLast || approvals.length > 0)) {
    return refuse(
      'not_supported',
      `Several people have to approve tool call ${toolCallId}, so an approval can neither change its input nor cover later calls. Approve it as it is; or deny it with a reason, so that the model asks anew.`,
    )
  }
  if (!isLast) return { facts: [{ type: 'approval_added', ...question, ...details }] }
  const fact: FactOf<'approval_decided'> = {
    type: 'approval_decided',
    ...question,
    approved: true,
    ...details,
    ...omitUndefined({ standing }),
  }
  if (!isChanged || command.input === undefined) return { facts: [fact] }
  if (standing) {
    return refuse(
      'not_supported',
      `An approval that covers later calls cannot change the input of tool call ${toolCallId}. Approve it as it is, or leave standing out.`,
    )
  }
  const { input } = command
  return { facts: [{ ...fact, input, note: describeChangedInput(by, call.input, input) }] }
}

function recordsDecision(event: RuntimeEvent, { type, toolCallId, by }: DecisionCommand): boolean {
  if (event.type !== 'approval_decided' && event.type !== 'approval_added') return false
  if (event.elsewhere || event.toolCallId !== toolCallId || event.by !== by) return false
  return (type === 'approve') === (event.type === 'approval_added' || event.approved)
}

function decideWithdraw(state: RunState, command: OutsideCommandOf<'withdraw'>, at: number): Decision {
  const { by, reason } = command
  const found = carryStanding(state, at).find(({ toolCallId }) => toolCallId === command.standing)
  if (found === undefined) {
    return refuse(
      'no_standing_approval',
      `No standing approval ${command.standing} holds in run ${state.runId}: it was not given here, has expired, or was withdrawn. Nothing had to be withdrawn; show the run to see which hold.`,
    )
  }
  const standing = found.toolCallId
  return {
    facts: [{ type: 'approval_withdrawn', turn: state.turn, standing, by, ...omitUndefined({ reason }) }],
  }
}

/** The rules of one type of outside command: the decision, and the ways back from the record. */
interface CommandRules<T extends OutsideCommand['type'] = OutsideCommand['type']> {
  /** Returns what follows from the command in a run that is not done. */
  decide(state: RunState, command: OutsideCommandOf<T>, at: number): Decision
  /** The types of the events that record it. */
  readonly types: readonly EventType[]
  /** The inverse of `decide`: returns the command that an event records; `undefined` if the event records none of this type. */
  recover(event: RuntimeEvent): OutsideCommandOf<T> | undefined
  /** Returns whether an event records this very command, by what the event says. */
  isRecordedBy(event: RuntimeEvent, command: OutsideCommandOf<T>): boolean
  /** Why it is refused, where another process has refused it and only the record tells. */
  readonly usualRefusal: Refusal['code']
}

/** EVERY OUTSIDE COMMAND once: what follows from it, and how the record of a run gives it back. */
const outsideCommands: { readonly [T in OutsideCommand['type']]: CommandRules<T> } = {
  steer: createInputRules('steer'),
  queue: createInputRules('queue'),
  approve: {
    decide: decideApproval,
    types: ['approval_decided', 'approval_added'],
    recover(event) {
      if (event.type !== 'approval_decided' && event.type !== 'approval_added') return undefined
      const { toolCallId, attempt, inputDigest, by, via, roles, reason } = event
      const asked = { toolCallId, attempt, inputDigest, by, ...omitUndefined({ via, roles, reason }) }
      if (event.type === 'approval_added') return { type: 'approve', ...asked }
      const { input, standing } = event
      return { type: 'approve', ...asked, ...omitUndefined({ input, standing }) }
    },
    isRecordedBy: recordsDecision,
    usualRefusal: 'not_awaiting_approval',
  },
  deny: {
    decide: decideApproval,
    types: ['approval_decided'],
    recover(event) {
      if (event.type !== 'approval_decided') return undefined
      const { toolCallId, attempt, inputDigest, by, via, roles, reason = '' } = event
      return { type: 'deny', toolCallId, attempt, inputDigest, by, ...omitUndefined({ via, roles }), reason }
    },
    isRecordedBy: recordsDecision,
    usualRefusal: 'not_awaiting_approval',
  },
  settle: {
    decide: decideSettle,
    types: ['tool_result'],
    recover(event) {
      if (event.type !== 'tool_result') return undefined
      const { toolCallId, outcome, content, child, settled } = event
      if (outcome !== 'success' && outcome !== 'failed') return undefined
      return { type: 'settle', toolCallId, outcome, content, ...omitUndefined({ child }), ...settled }
    },
    isRecordedBy: (event, { toolCallId }) => event.type === 'tool_result' && event.toolCallId === toolCallId,
    usualRefusal: 'not_deferred',
  },
  withdraw: {
    decide: decideWithdraw,
    types: ['approval_withdrawn'],
    recover(event) {
      if (event.type !== 'approval_withdrawn') return undefined
      const { standing, by, reason } = event
      return { type: 'withdraw', standing, by, ...omitUndefined({ reason }) }
    },
    isRecordedBy: (event, { standing }) => event.type === 'approval_withdrawn' && event.standing === standing,
    usualRefusal: 'no_standing_approval',
  },
  cancel: {
    decide(state, { by, reason }) {
      const message = `Run ${state.runId} is being cancelled already. Wait for its result.`
      if (state.cancel) return refuse('already_cancelled', message)
      return { facts: [{ type: 'cancel_requested', turn: state.turn, ...omitUndefined({ by, reason }) }] }
    },
    types: ['cancel_requested'],
    recover(event) {
      if (event.type !== 'cancel_requested') return undefined
      return { type: 'cancel', ...omitUndefined({ by: event.by, reason: event.reason }) }
    },
    isRecordedBy: (event) => event.type === 'cancel_requested',
    usualRefusal: 'already_cancelled',
  },
  raise_limit: {
    decide: decideRaiseLimit,
    types: ['limit_raised'],
    recover(event) {
      if (event.type !== 'limit_raised') return undefined
      const { limit, max, by, reason } = event
      return { type: 'raise_limit', limit, max, by, ...omitUndefined({ reason }) }
    },
    isRecordedBy: (event, { limit, max }) =>
      event.type === 'limit_raised' && event.limit === limit && event.max === max,
    usualRefusal: 'not_raised',
  },
  set_schedule: {
    decide: decideSetSchedule,
    types: ['schedule_set'],
    recover(event) {
      if (event.type !== 'schedule_set') return undefined
      const { paused = false, by, reason } = event
      return { type: 'set_schedule', paused, ...omitUndefined({ by, reason }) }
    },
    isRecordedBy: (event, { paused }) => event.type === 'schedule_set' && (event.paused ?? false) === paused,
    usualRefusal: 'not_scheduled',
  },
}

function decideSetSchedule(
  state: RunState,
  { paused, by, reason }: OutsideCommandOf<'set_schedule'>,
  now: number,
): Decision {
  const { schedule, startedAt: since, turn } = state
  if (schedule === undefined) {
    const message = `Run ${state.runId} is no schedule, so it cannot be paused. To stop it, cancel it.`
    return refuse('not_scheduled', message)
  }
  if (paused === (schedule.paused ?? false)) return nothing
  const fact = setSchedule({ ...schedule, paused }, { since, now })
  return { facts: [{ ...fact, turn, ...omitUndefined({ by, reason }) }] }
}

/** The types of events that record an outside command. */
export const commandEventTypes: readonly EventType[] = [
  ...new Set(Object.values(outsideCommands).flatMap(({ types }) => types)),
]

export function isOutsideCause(cause: Cause): cause is OutsideCommand['type'] {
  return Object.hasOwn(outsideCommands, cause)
}

/** Returns what the machine knows of commands of a type. */
export function getCommandRules<T extends OutsideCommand['type']>(type: T): CommandRules<T> {
  return outsideCommands[type]
}

/** What of a command the record may not have any more, once its content was removed. */
const removable: readonly string[] = ['message', 'content', 'input', 'inputDigest', 'reason']

/**
 * Returns whether a command is the one that an event records, word for word. The roles of its sender are left out: they are no
 * part of what was asked. Of removed content only what is left is compared.
 */
export function recordsCommand(event: RuntimeEvent, command: OutsideCommand): boolean {
  if (findCause(event) !== command.type) return false
  const recorded = getCommandRules(command.type).recover(event)
  return recorded !== undefined && isSameCommand(command, recorded, event.removed ? removable : [])
}

/** Returns whether two commands ask for the same; the second may be as the record has it. */
export function isSameCommand(
  given: OutsideCommand,
  earlier: OutsideCommand,
  without: readonly string[] = [],
): boolean {
  const [one, other] = [toAsked(given), toAsked(earlier)]
  // A decision that names no question is about the one that is open.
  for (const name of ['attempt', 'inputDigest']) one[name] ??= other[name]
  // The same input changes nothing, and is not recorded.
  if (other['input'] === undefined && one['input'] !== undefined && 'inputDigest' in other) {
    if (computeDigest(one['input'] as Json) === other['inputDigest']) delete one['input']
  }
  for (const name of [...without, 'roles']) delete one[name]
  for (const name of [...without, 'roles']) delete other[name]
  return isSameJson(omitUndefined(one) as Json, omitUndefined(other) as Json)
}

/** The fields of a command, with the media types that the record has. */
function toAsked(command: OutsideCommand): { [field: string]: unknown } {
  if ('message' in command) return { ...command, message: correctMessage(command.message) }
  if ('content' in command) return { ...command, content: correctMediaTypes(command.content) }
  return { ...command }
}

/** Returns whether an event records the input of a command, by its receipt. */
export function recordsInput(event: RuntimeEvent, command: OutsideCommand): boolean {
  const isInput = command.type === 'steer' || command.type === 'queue'
  return isInput && event.type === 'input_received' && event.receipt === command.receipt
}

/** The rules of both commands that bring input. */
function createInputRules<T extends 'steer' | 'queue'>(type: T): CommandRules<T> {
  return {
    decide: decideInput,
    types: ['input_received'],
    recover(event) {
      if (event.type !== 'input_received') return undefined
      const { message, receipt = '' } = event
      return { type, message, receipt } as OutsideCommandOf<T>
    },
    isRecordedBy: recordsInput,
    usualRefusal: 'cancelled',
  }
}

function decideInput(
  state: RunState,
  { type: delivery, message, receipt }: OutsideCommandOf<'steer' | 'queue'>,
): Decision {
  if (state.schedule) {
    const message = `Run ${state.runId} is a schedule, and talks to no model. Give the input to a run that it started, or set a schedule with another input.`
    return refuse('not_supported', message)
  }
  if (state.cancel) {
    const message = `Run ${state.runId} is being cancelled and takes no more input. Wait for its result, and give the input to the next run.`
    return refuse('cancelled', message)
  }
  // The same input once more: it has its place already.
  if (state.pendingInputs.some((input) => input.inputId === receipt)) return nothing
  const corrected = correctMessage(message)
  return { facts: [{ type: 'input_received', turn: state.turn, message: corrected, delivery, receipt }] }
}

function decideRaiseLimit(state: RunState, command: OutsideCommandOf<'raise_limit'>): Decision {
  const { limit, max, by, reason } = command
  const now = state.limits[limit]
  const bound = findBound(state.parent?.grant ?? {}, limit)
  if (bound !== undefined && max > bound) {
    const message = `Run ${state.runId} is a child of run ${state.parent?.runId}, which has granted it ${bound} of ${limit}; ${max} is more. Raise the limit of that run, and let it ask again.`
    return refuse('not_raised', message)
  }
  if (now !== undefined && max > now) {
    return {
      facts: [{ type: 'limit_raised', turn: state.turn, limit, max, by, ...omitUndefined({ reason }) }],
    }
  }
  const remedy = now === undefined ? 'What is not set needs no raise.' : `Give more than ${now}.`
  const message = `The limit ${limit} of run ${state.runId} is ${now ?? 'not set'}; ${max} would not raise it. ${remedy}`
  return refuse('not_raised', message)
}

function decideSettle(state: RunState, command: OutsideCommandOf<'settle'>): Decision {
  const call = findCall(state, command.toolCallId)
  if (call?.status !== 'deferred') {
    const message = `Tool call ${command.toolCallId} of run ${state.runId} does not wait to be settled; show the run to see which do.`
    return refuse('not_deferred', message)
  }
  const { toolCallId, name } = call
  const { outcome, child, by, reason } = command
  const content = correctMediaTypes(command.content)
  if (call.child !== undefined && child === undefined) {
    const message = `Tool call ${toolCallId} of run ${state.runId} is the work of run ${call.deferred?.externalId}: decide what that run waits for, or cancel it.`
    return refuse('not_deferred', message)
  }
  const result = { type: 'tool_result' as const, turn: state.turn, toolCallId, name, outcome, content }
  const settled = by === undefined && reason === undefined ? undefined : omitUndefined({ by, reason })
  return { facts: [{ ...result, ...omitUndefined({ child, settled }) }] }
}

/** Feedback is about a run as it ended, so nothing of it can reach the model, and its last turn is all that has to be known. */
export function decideFeedback(
  { runId, phase, turn }: Pick<RunState, 'runId' | 'phase' | 'turn'>,
  { type: _type, ...feedback }: FeedbackCommand,
): Decision {
  if (phase === 'done') return { facts: [{ type: 'feedback_given', turn, ...feedback }] }
  const message = `Run ${runId} has not ended, and feedback is about how a run ended. Give it when its result is done; to tell the model something, steer the run.`
  return refuse('not_finished', message)
}

function recoverFeedback(event: RuntimeEvent): FeedbackCommand | undefined {
  if (event.type !== 'feedback_given') return undefined
  const { by, score, note } = event
  return { type: 'feedback', by, ...omitUndefined({ score, note }) }
}

/** EVERY SIGNAL once: what follows from it, and how the record of a run gives it back. */
const signals: { readonly [T in Signal['type']]: SignalRules<T> } = {
  ...modelSignals,
  ...toolSignals,
  ...checkSignals,
}

/** Returns whether a message is a signal: a report of a model call, of tool calls, or of a check. */
export function isSignal(message: Command | Signal): message is Signal {
  return Object.hasOwn(signals, message.type)
}

function getSignalRules<T extends Signal['type']>(type: T): SignalRules<T> {
  return signals[type]
}

/** Begins a run that does not exist yet. */
function decideStart(state: RunState | undefined, command: StartCommand, { at: now }: Stamp): Decision {
  if (state)
    return refuse(
      'run_exists',
      `Run ${state.runId} exists already. Resume it, or start one under another id.`,
    )
  const { agent, definition, limits, retry, input, sessionId, sessionPlace, parent, subject } = command
  const { standing } = command
  const { history = [], edits, uncheckedFrom, withContext } = command
  const facts: Fact[] = [
    {
      type: 'run_started',
      turn: 0,
      agent,
      definition,
      limits,
      retry,
      ...pickGiven(command),
      ...omitUndefined({ sessionId, sessionPlace, parent, subject, standing, withContext }),
    },
  ]
  if (command.schedule) facts.push({ ...setSchedule(command.schedule, { since: now, now }), turn: 0 })
  if (history.length > 0) {
    facts.push({ type: 'history_carried', turn: 0, messages: history, ...omitUndefined({ uncheckedFrom }) })
  }
  if (edits && edits.edits.length > 0) facts.push({ type: 'history_edited', turn: 0, ...edits })
  const { receipt, sessionEdit, onInput } = command
  if (sessionEdit) facts.push({ type: 'session_edited', turn: 0, ...sessionEdit })
  if (input) {
    facts.push({
      type: 'input_received',
      turn: 0,
      message: input,
      delivery: 'start',
      ...omitUndefined({ receipt, onInput }),
    })
  }
  return { facts }
}

/**
 * Records what a resume finds: the take-over, calls in doubt, and the failure of an attempt that no process
 * continues.
 */
function decideResume(state: RunState, { why, definition, lacks }: ResumeCommand): Decision {
  const inDoubt = [...(state.background ?? []), ...openTurnCalls(state)].filter(
    (call) => call.status === 'started' || call.status === 'in_doubt',
  )
  const facts: Fact[] = [
    {
      type: 'run_resumed',
      turn: state.turn,
      why,
      inDoubt: inDoubt.map((call) => call.toolCallId),
      ...(definition.digest !== state.definition.digest && { definition }),
      ...omitUndefined({ lacks }),
    },
  ]
  if (state.phase === 'streaming' && !state.attempt.failed) {
    facts.push(...settleUsage(state, 'interrupted'), {
      type: 'model_stream_failed',
      turn: state.turn,
      attempt: state.attempt.number,
      failure: {
        class: 'interrupted',
        message: 'The process that made this call stopped before the reply was complete.',
        retryable: true,
      },
      retryAt: state.at,
    })
  }
  return { facts }
}

/** The inverse of `decideResume`. */
function recoverResume(
  event: RuntimeEvent,
  definition: AgentDefinition | undefined,
): ResumeCommand | undefined {
  if (event.type !== 'run_resumed') return undefined
  const resumed = event.definition ?? definition
  const { why, lacks } = event
  return resumed && { type: 'resume', why, definition: resumed, ...omitUndefined({ lacks }) }
}

/** The inverse of `decideStart`. */
function recoverStart(position: RecordedPosition): StartCommand | undefined {
  const event = position.recorded[position.index]
  if (event?.type !== 'run_started') return undefined
  const { runId, agent, definition, limits, retry, withContext } = event
  const { sessionId, sessionPlace, parent, subject, standing } = event
  const { message, receipt, onInput } = findBesideStart('input_received', position) ?? {}
  const edited = findBesideStart('session_edited', position)
  if (message === undefined && edited === undefined) return undefined
  const { messages: history, uncheckedFrom } = findBesideStart('history_carried', position) ?? {}
  const { edits, by, reason } = findBesideStart('history_edited', position) ?? {}
  const set = findBesideStart('schedule_set', position)
  return {
    type: 'start',
    runId,
    agent,
    definition,
    limits,
    retry,
    ...pickGiven(event),
    ...omitUndefined({
      input: message,
      sessionEdit: edited && pickSessionEdit(edited),
      receipt,
      onInput,
      sessionId,
      sessionPlace,
      parent,
      subject,
      standing,
      withContext,
      history,
      uncheckedFrom,
    }),
    ...(edits && { edits: { edits, ...omitUndefined({ by, reason }) } }),
    ...(set && { schedule: pickSchedule(set) }),
  }
}

function pickSessionEdit(event: EventOf<'session_edited'>): NonNullable<StartCommand['sessionEdit']> {
  const { edit, messages, count, standing, uncheckedFrom, by, reason } = event
  return { edit, ...omitUndefined({ messages, count, standing, uncheckedFrom, by, reason }) }
}

/** One of the facts that a start puts after `run_started`: at most four, the input or the edit of its session last. */
function findBesideStart<T extends EventType>(
  type: T,
  { recorded, index }: RecordedPosition,
): EventOf<T> | undefined {
  const beside = recorded.slice(index + 1, index + 5)
  const input = beside.findIndex(({ type: each }) => each === 'input_received' || each === 'session_edited')
  return beside.slice(0, input + 1).find((event): event is EventOf<T> & typeof event => event.type === type)
}

/**
 * Returns what follows from a command or a signal in a state; `undefined` is the state of a run that does not exist yet.
 * Pure: the only way from the outside into the ledger. A signal that comes too late, from an attempt or a call that has
 * ended, gives no facts.
 */
export function decide(state: RunState | undefined, message: Command | Signal, stamp: Stamp): Decision {
  if (message.type === 'start') return decideStart(state, message, stamp)
  if (state === undefined) return refuse('not_supported', 'The run does not exist yet; start it first.')
  if (isSignal(message)) return getSignalRules(message.type).decide(state, message, stamp)
  if (message.type === 'feedback') return decideFeedback(state, message)
  if (state.phase === 'done') {
    return refuse('run_finished', describeFinished(`Run ${state.runId} is finished (${state.reason})`))
  }
  if (message.type === 'resume') return decideResume(state, message)
  return getCommandRules(message.type).decide(state, message, stamp.at)
}

/**
 * The inverse of `decide`: returns the command or signal that the machine received in a state, made again from the events
 * that followed. `undefined` if it received none (`findCause` says `controller`), where the record ends within the
 * decision, and for `calls_checked`: whether calls may run is asked of the agent.
 */
export function recoverMessage(
  state: RunState | undefined,
  position: RecordedPosition,
): Command | Signal | undefined {
  const event = position.recorded[position.index]
  if (event === undefined) return undefined
  const cause = findCause(event)
  if (cause === 'start') return recoverStart(position)
  if (cause === 'resume') return recoverResume(event, state?.definition)
  if (cause === 'feedback') return recoverFeedback(event)
  if (isOutsideCause(cause)) return getCommandRules(cause).recover(event)
  if (state === undefined) return undefined
  return cause === 'controller' ? undefined : getSignalRules(cause).recover(state, position)
}
