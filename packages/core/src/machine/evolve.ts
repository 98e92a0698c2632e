import { pickGiven } from '../events/agent-definition.ts'
import {
  type AssistantMessage,
  type Message,
  joinText,
  type ToolResult,
  type UserMessage,
} from '../events/content.ts'
import {
  type EventOf,
  type EventType,
  type HistoryEdit,
  removedText,
  requireKnown,
  type RuntimeEvent,
} from '../events/event.ts'
import { IllegalTransitionError } from '../values/errors.ts'
import { toCanonicalJson, omitUndefined } from '../values/json.ts'
import { findCall, toTextContent } from './calls.ts'
import { withSummary } from './compaction.ts'
import {
  applyApprovalAdded,
  applyApprovalApplied,
  applyApprovalDecided,
  applyApprovalRequested,
  applyAttemptFailed,
  applyBackgroundEnded,
  applyDelta,
  applyMessageFinished,
  applyModelCallStarted,
  applyModelStreamFailed,
  applyRequestsCollected,
  applyResultsInjected,
  applyToolDeferred,
  applyToolInput,
  applyToolProgress,
  applyToolRequest,
  applyToolResult,
  applyToolStarted,
  applyUsageUpdated,
  requireClosed,
  withAttempt,
  withChange,
} from './fold-turn.ts'
import {
  createHistory,
  emptyCallLog,
  findHistoryFault,
  findPairingFault,
  getMessage,
  type History,
  readMessages,
} from './history.ts'
import { isSuspended } from './next-action.ts'
import { namesModel } from './request.ts'
import { listGuardrails, requiresEffects } from './required-effects.ts'
import { pickSchedule } from './schedule.ts'
import {
  type CollectingState,
  type DoneState,
  noTotals,
  type RunState,
  toBase,
  withHistory,
  withMessage,
  withSpent,
} from './state.ts'
import { withoutStanding } from './approvals.ts'
import { estimateDefinitionTokens } from './tokens.ts'
import { createIllegalTransition, transitionTable } from './transition-table.ts'

/**
 * The fold: the state before an event, and the event, to the state after it. `undefined` is the state before the
 * first event. Pure and total: an event that is not legal in the phase throws `IllegalTransitionError`, and one that
 * this release does not know an `UnknownEventError`.
 */
export function evolve(state: RunState | undefined, event: RuntimeEvent): RunState {
  requireKnown(event)
  if (state === undefined) return createFirstState(event)
  if (!Object.hasOwn(transitionTable[state.phase], event.type)) throw createIllegalTransition(state, event)
  requireOrder(state, event)
  const { seq, epoch, at, turn } = event
  const waitedMs = state.waitedMs + measureWait(state, event)
  const gone = event.removed && state.removedFrom === undefined ? { removedFrom: seq } : undefined
  const fold = folds[event.type] as Fold<EventType>
  const next = fold({ ...state, seq, epoch, at, turn, waitedMs, ...gone }, event)
  // The shared events of a fork do not count as its own repeats.
  const isForked = state.parent?.relation === 'fork' && seq === state.parent.seq + 1
  return isForked ? withChange(next) : next
}

type Fold<T extends EventType> = (state: RunState, event: EventOf<T>) => RunState

/**
 * EVERY EVENT once: the state that it leads to. `changing` marks those that may change what a call answers, or what the
 * model makes of it: someone said or decided something, time passed unwatched, or the model was shown less of what it knew.
 * Tool events are folded with their calls.
 */
const folds: { readonly [T in EventType]: Fold<T> } = {
  run_started(state, event) {
    throw createIllegalTransition(state, event)
  },
  schedule_set: applyScheduleSet,
  session_edited: applySessionEdited,
  schedule_fired: applyScheduleFired,
  run_resumed: changing(applyRunResumed),
  run_finished: applyRunFinished,
  history_carried: applyHistoryCarried,
  history_edited: changing(applyHistoryEdited),
  input_received: changing(applyInputReceived),
  input_settled: applyInputSettled,
  model_call_started: applyModelCallStarted,
  assistant_started: (state, event) =>
    withAttempt(state, event, omitUndefined({ providerMessageId: event.providerMessageId })),
  assistant_text_delta: applyDelta,
  assistant_reasoning_delta: applyDelta,
  tool_input_delta: applyToolInput,
  tool_request_ready: applyToolRequest,
  usage_updated: applyUsageUpdated,
  assistant_message_finished: applyMessageFinished,
  model_stream_failed: applyModelStreamFailed,
  tool_requests_collected: applyRequestsCollected,
  approval_requested: applyApprovalRequested,
  approval_added: applyApprovalAdded,
  approval_decided: changing(applyApprovalDecided),
  approval_applied: applyApprovalApplied,
  approval_withdrawn: (state, { standing }) => withoutStanding(state, standing),
  tool_started: applyToolStarted,
  tool_progress: applyToolProgress,
  tool_deferred: applyToolDeferred,
  tool_attempt_failed: applyAttemptFailed,
  tool_result: applyToolResult,
  background_ended: changing(applyBackgroundEnded),
  tool_results_injected: applyResultsInjected,
  compaction_started: applyCompactionStarted,
  context_compacted: changing(applyContextCompacted),
  agent_handed_off: changing(applyAgentHandedOff),
  guardrail_tripped: applyGuardrailTripped,
  guardrails_checked: applyGuardrailsChecked,
  output_checked: applyOutputChecked,
  limit_reached: (state, { limit, policy, at }) => ({ ...state, metLimit: { limit, policy, at } }),
  limit_raised: changing(applyLimitRaised),
  cancel_requested: (state, { at, by, reason }) => ({
    ...state,
    cancel: { at, ...omitUndefined({ by, reason }) },
  }),
  feedback_given: (state) => state,
}

function changing<T extends EventType>(fold: Fold<T>): Fold<T> {
  return (state, event) => withChange(fold(state, event))
}

/** How long nothing was in flight before this event, in milliseconds: a person was waited for, or a process. */
function measureWait(state: RunState, event: RuntimeEvent): number {
  const waitedMs = event.at - state.at
  // Events of one append have one time: nothing was waited for between them.
  if (waitedMs <= 0) return 0
  if (event.type === 'run_resumed') return waitedMs
  // Judged as the writer saw it: content removed since does not count.
  const known =
    state.phase === 'executing' && state.removedFrom !== undefined
      ? { ...state, calls: state.calls.map(({ inputRemoved: _since, ...call }) => call) }
      : state
  return isSuspended(known) ? waitedMs : 0
}

function createFirstState(event: RuntimeEvent): RunState {
  if (event.type !== 'run_started' || event.seq !== 1) {
    throw new IllegalTransitionError('(nothing)', event.type, ['run_started'], `at seq ${event.seq}`)
  }
  const { sessionId, sessionPlace, parent, subject, standing, withContext } = event
  return {
    phase: 'idle',
    runId: event.runId,
    seq: event.seq,
    epoch: event.epoch,
    at: event.at,
    turn: event.turn,
    startedAt: event.at,
    agent: event.agent,
    definition: event.definition,
    limits: event.limits,
    retry: event.retry,
    ...pickGiven(event),
    ...omitUndefined({ sessionId, sessionPlace, parent, subject, withContext }),
    ...(standing && { standing: standing.map((each) => ({ ...each, seq: event.seq })) }),
    ...(event.removed && { removedFrom: event.seq }),
    history: createHistory([]),
    exchangeFrom: 0,
    totals: noTotals,
    contextTokens: estimateDefinitionTokens(event.definition),
    reportedTokens: 0,
    estimateFactor: 1,
    waitedMs: 0,
    callLog: emptyCallLog,
    standstill: { from: 0, replyFrom: 0, served: 0 },
    errorStreaks: {},
    pendingInputs: [],
    inputSinceReply: false,
    takeOvers: 0,
    repairs: 0,
    lastText: '',
  }
}

/** Law 4, and law 1: a call's events are in its own turn. */
function requireOrder(state: RunState, event: RuntimeEvent): void {
  if (event.runId !== state.runId)
    throw createIllegalTransition(state, event, `it belongs to run ${event.runId}`)
  if (event.seq !== state.seq + 1)
    throw createIllegalTransition(state, event, `seq ${event.seq} follows ${state.seq}`)
  if (event.epoch < state.epoch)
    throw createIllegalTransition(state, event, `epoch ${event.epoch} follows ${state.epoch}`)
  const startsTurn = event.type === 'model_call_started' && event.attempt === 1
  if (event.turn !== state.turn + (startsTurn ? 1 : 0)) {
    throw createIllegalTransition(state, event, `turn ${event.turn} follows ${state.turn}`)
  }
}

function applyRunResumed(before: RunState, event: EventOf<'run_resumed'>): RunState {
  const { definition = before.definition } = event
  const { model, ...rest } = before
  // A model that took over stays in use as long as the agent's code names it.
  const state = model === undefined || namesModel(definition, model) ? before : rest
  const takeOvers = state.takeOvers + (requiresEffects(before) ? 1 : 0)
  const known = new Set((definition.guardrails ?? []).map(({ name }) => name))
  const next = withInputCheck({ ...state, definition, takeOvers }, (name) => known.has(name))
  const { compacting } = next
  const beside = next.background?.map((call) => ({ ...call, status: 'in_doubt' as const }))
  const doubted = beside ? { ...next, background: beside } : next
  const left = compacting
    ? { ...doubted, compacting: { ...compacting, interrupted: true as const } }
    : doubted
  if (left.phase !== 'executing') return left
  const calls = left.calls.map((call) =>
    call.status === 'started' ? { ...call, status: 'in_doubt' as const } : call,
  )
  return { ...left, calls }
}

function applyInputReceived(state: RunState, event: EventOf<'input_received'>): RunState {
  const { message, delivery, receipt } = event
  if (delivery === 'start') return withUserMessage({ ...state, exchangeFrom: state.history.length }, message)
  if (receipt === undefined || state.pendingInputs.some((input) => input.inputId === receipt)) {
    throw createIllegalTransition(state, event, 'input that comes later needs an id of its own')
  }
  return { ...state, pendingInputs: [...state.pendingInputs, { inputId: receipt, delivery, message }] }
}

/** Returns whether what was said so far has its answer: what comes now begins a new exchange. */
function isAnswered({ history }: RunState): boolean {
  const last = getMessage(history, history.length - 1)
  if (last?.role !== 'assistant') return false
  const asks = last.parts.some(({ type }) => type === 'tool_call')
  return !asks && !last.partial && ['end', 'tool_use', 'other'].includes(last.stopReason)
}

/** A user's message enters the history, and the agent's guardrails have to check it. */
function withUserMessage(state: RunState, message: UserMessage): RunState {
  const exchangeFrom = isAnswered(state) ? state.history.length : state.exchangeFrom
  const next = { ...withMessage(state, message), exchangeFrom, inputSinceReply: true }
  const guardrails = listGuardrails(state, 'input')
  // What a schedule holds is checked in each run that it starts.
  if (guardrails.length === 0 || state.schedule) return next
  const from = state.inputCheck?.from ?? state.history.length
  return { ...next, inputCheck: { seq: state.seq, from, guardrails } }
}

function applyInputSettled(state: RunState, event: EventOf<'input_settled'>): RunState {
  const input = state.pendingInputs.find(({ inputId }) => inputId === event.receipt)
  if (input === undefined) throw createIllegalTransition(state, event, `no input ${event.receipt} waits`)
  const rest = { ...state, pendingInputs: state.pendingInputs.filter((other) => other !== input) }
  if (!event.delivered) return rest
  requireClosed(state, event)
  if (state.phase === 'streaming') throw createIllegalTransition(state, event, 'a model call is in flight')
  return withChange(withUserMessage(rest, input.message))
}

function applyScheduleSet(state: RunState, event: EventOf<'schedule_set'>): RunState {
  if (state.schedule === undefined && state.history.length > 0)
    throw createIllegalTransition(state, event, 'the run has begun, and is no schedule')
  const { paused, nextAt } = event
  const { started = 0, lastRun } = state.schedule ?? {}
  const schedule = { ...pickSchedule(event), ...omitUndefined({ paused, nextAt, lastRun }), started }
  return { ...state, schedule }
}

function applyScheduleFired(state: RunState, event: EventOf<'schedule_fired'>): RunState {
  const { schedule } = state
  const { scheduledAt, startedRun: runId, nextAt } = event
  if (schedule?.nextAt === undefined || scheduledAt < schedule.nextAt)
    throw createIllegalTransition(state, event, `the schedule is not due at ${scheduledAt}`)
  if (nextAt !== undefined && nextAt <= scheduledAt)
    throw createIllegalTransition(state, event, `its next time ${nextAt} is not after ${scheduledAt}`)
  const { nextAt: _past, ...rest } = schedule
  const begun = runId && { started: rest.started + 1, lastRun: { runId, scheduledAt } }
  return { ...state, schedule: { ...rest, ...omitUndefined({ nextAt }), ...begun } }
}

function applyRunFinished(state: RunState, event: EventOf<'run_finished'>): DoneState {
  requireClosed(state, event)
  const [input] = state.pendingInputs
  if (input) throw createIllegalTransition(state, event, `input ${input.inputId} is not settled`)
  const [beside] = state.background ?? []
  if (beside)
    throw createIllegalTransition(state, event, `call ${beside.toolCallId} goes on in the background`)
  const { reason, detail } = event
  return {
    ...toBase(state),
    phase: 'done',
    reason,
    endedAt: event.at,
    ...(detail !== undefined && { detail }),
  }
}

function applyLimitRaised(state: RunState, event: EventOf<'limit_raised'>): RunState {
  const limits = { ...state.limits, [event.limit]: event.max }
  if (state.metLimit?.limit !== event.limit) return { ...state, limits }
  const { metLimit: _met, ...rest } = state
  return { ...rest, limits }
}

/** No run has more messages than this; the number may come from a file of unknown origin. */
const maxMissing = 1_000_000

/** The history of an earlier run, before anything is said in this one. */
function applyHistoryCarried(state: RunState, event: EventOf<'history_carried'>): RunState {
  if (state.history.length > 0) throw createIllegalTransition(state, event, 'something was said already')
  const { uncheckedFrom, missing = 0 } = event
  if (missing > maxMissing)
    throw createIllegalTransition(state, event, `${missing} messages are more than a run can carry`)
  const history = createHistory(
    missing === 0
      ? event.messages
      : [...Array.from({ length: missing }, () => removedMessage), ...event.messages],
  )
  requirePaired(state, event, history)
  const next = withHistory(state, history)
  const guardrails = listGuardrails(state, 'input')
  if (uncheckedFrom === undefined || guardrails.length === 0 || state.schedule) return next
  return { ...next, inputCheck: { seq: event.seq, from: uncheckedFrom, guardrails } }
}

/** The history with some of its messages changed or gone. */
function applyHistoryEdited(state: RunState, event: EventOf<'history_edited'>): RunState {
  const messages = withEdits(readMessages(state.history), event.edits)
  if (messages === undefined) {
    throw createIllegalTransition(
      state,
      event,
      'its places are not in ascending order, or not in the history',
    )
  }
  const paired = createHistory(state.removedFrom === undefined ? messages : withoutUnpaired(messages))
  requirePaired(state, event, paired)
  requireClosed(state, event)
  const exchangeFrom = state.exchangeFrom - countRemovedBefore(event.edits, state.exchangeFrom)
  const next = withHistory({ ...state, exchangeFrom }, paired)
  const { inputCheck } = state
  if (inputCheck === undefined) return next
  return {
    ...next,
    inputCheck: { ...inputCheck, from: inputCheck.from - countRemovedBefore(event.edits, inputCheck.from) },
  }
}

/** The history of a session with messages added to its end, or taken from it. */
function applySessionEdited(state: RunState, event: EventOf<'session_edited'>): RunState {
  if (state.sessionEdit) throw createIllegalTransition(state, event, 'a run edits its session once')
  const { edit, messages = [], count = 0, standing, uncheckedFrom } = event
  const left = standing === undefined ? state : withoutStanding(state, standing)
  const before = readMessages(state.history)
  if (count > before.length)
    throw createIllegalTransition(state, event, `the history has ${before.length} messages, not ${count}`)
  const edited = [...before.slice(0, before.length - count), ...messages]
  const history = createHistory(state.removedFrom === undefined ? edited : withoutUnpaired(edited))
  requirePaired(state, event, history)
  return { ...withHistory(left, history), sessionEdit: { edit, ...omitUndefined({ uncheckedFrom }) } }
}

function countRemovedBefore(edits: readonly HistoryEdit[], place: number): number {
  return edits.filter(({ index, message }) => !message && index < place).length
}

/** The messages after some edits; `undefined` if the edits name places that are not there, or not in order. */
export function withEdits(
  messages: readonly Message[],
  edits: readonly HistoryEdit[],
): readonly Message[] | undefined {
  let last = -1
  const changed: (Message | undefined)[] = [...messages]
  for (const { index, message } of edits) {
    if (index <= last || index >= messages.length) return undefined
    last = index
    changed[index] = message
  }
  return changed.flatMap((message) => (message ? [message] : []))
}

/** A model begins to sum up the oldest messages. */
function applyCompactionStarted(state: RunState, event: EventOf<'compaction_started'>): RunState {
  requireCut(state, event)
  const { compacting: before } = state
  if (before && !before.interrupted)
    throw createIllegalTransition(state, event, 'a summary is being written already')
  const { model, replacedMessages, grant, maxOutputTokens, interrupted } = event
  if (before && before.replacedMessages !== replacedMessages) {
    throw createIllegalTransition(state, event, 'the summary that was interrupted replaces other messages')
  }
  const compacting = { model, replacedMessages, grant, ...omitUndefined({ maxOutputTokens }) }
  const totals = interrupted ? withSpent(state.totals, interrupted.usage, interrupted.costUsd) : state.totals
  return { ...state, totals, compacting }
}

/** The history with its older messages replaced: cut where no call is parted from its result (law 3). */
function applyContextCompacted(state: RunState, event: EventOf<'context_compacted'>): RunState {
  requireCut(state, event)
  const { replacedMessages, taskAt, usage = {}, costUsd } = event
  if (state.compacting && state.compacting.replacedMessages !== replacedMessages) {
    throw createIllegalTransition(state, event, 'it replaces other messages than are being summed up')
  }
  const { compacting: _ended, ...rest } = state
  if (
    taskAt !== undefined &&
    (taskAt >= replacedMessages || getMessage(state.history, taskAt)?.role !== 'user')
  ) {
    throw createIllegalTransition(
      state,
      event,
      `the message ${taskAt} is not one of the user's that it replaces`,
    )
  }
  const kept = withSummary(state, event)
  const totals = withSpent(state.totals, usage, costUsd)
  // The summary comes first, then the task.
  const exchangeFrom = 1 + Math.max(0, state.exchangeFrom - replacedMessages)
  // Where unchecked input was summed up, guardrails check the summary.
  const moved = kept.length - state.history.length
  const from =
    state.inputCheck && state.inputCheck.from >= replacedMessages ? state.inputCheck.from + moved : 0
  const shorter = withHistory<RunState>(
    withChecksRestarted({ ...rest, totals, exchangeFrom, compactedTurn: state.turn }, event, from),
    createHistory(kept),
  )
  if (shorter.phase !== 'streaming' || !shorter.attempt.failed) return shorter
  const failed = { ...shorter.attempt.failed, shortened: true as const }
  return { ...shorter, attempt: { ...shorter.attempt, failed } }
}

/**
 * Guardrails name messages by their places. If messages have moved during a check, the guardrails check again: findings at
 * the earlier places do not count.
 */
function withChecksRestarted(state: RunState, { seq }: RuntimeEvent, from: number): RunState {
  const { inputCheck } = state
  return inputCheck ? { ...state, inputCheck: { ...inputCheck, seq, from } } : state
}

function requireCut(
  state: RunState,
  event: EventOf<'compaction_started'> | EventOf<'context_compacted'>,
): void {
  const messages = readMessages(state.history)
  const { replacedMessages } = event
  if (replacedMessages <= messages.length && messages[replacedMessages]?.role !== 'tool') return
  throw createIllegalTransition(state, event, 'it would part a message from its results')
}

/** Another agent continues, with its own model, instructions and tools. */
function applyAgentHandedOff(state: RunState, event: EventOf<'agent_handed_off'>): RunState {
  if (state.phase !== 'injecting' || state.handoff?.to !== event.to || state.handoff.back) {
    throw createIllegalTransition(state, event, `no call asked for ${event.to}`)
  }
  if (event.from !== state.agent)
    throw createIllegalTransition(state, event, `the active agent is ${state.agent}`)
  const { handoff: _done, model: _its, ...rest } = state
  const { to: agent, definition, messages } = event
  const next = { ...rest, agent, definition, repairs: 0 }
  if (messages) {
    const history = createHistory(messages)
    requirePaired(state, event, history)
    const exchangeFrom = Math.max(
      0,
      messages.findLastIndex(({ role }) => role === 'user'),
    )
    return withHistory(withChecksRestarted({ ...next, exchangeFrom }, event, 0), history)
  }
  const contextTokens =
    state.contextTokens + estimateDefinitionTokens(definition) - estimateDefinitionTokens(state.definition)
  return { ...next, contextTokens: Math.max(0, contextTokens) }
}

/** Replaces a message whose content is gone. */
const removedMessage: Message = { role: 'user', parts: [{ type: 'text', text: removedText }] }

/** Replaces each call without its results, and results without their call, by a removed message. */
function withoutUnpaired(messages: readonly Message[]): readonly Message[] {
  return messages.map((message, index) => {
    const [before, after] = [messages[index - 1], messages[index + 1]]
    if (message.role === 'tool') return before && isWhole(before, message) ? message : removedMessage
    return isWhole(message, after) ? message : removedMessage
  })
}

function isWhole(message: Message, after: Message | undefined): boolean {
  return findPairingFault(after?.role === 'tool' ? [message, after] : [message]) === undefined
}

function requirePaired(state: RunState, event: RuntimeEvent, history: History): void {
  const fault = findHistoryFault(history)
  if (fault) throw createIllegalTransition(state, event, fault)
}

/** A guardrail's find changes the model's view, or ends the run. */
function applyGuardrailTripped(state: RunState, event: EventOf<'guardrail_tripped'>): RunState {
  const { guardrail, on, action, detail } = event
  const blocked = { guardrail, on, ...(detail !== undefined && { detail }) }
  switch (on) {
    case 'input':
      if (action === 'record') return state
      return { ...replaceInput(state, event), ...(action === 'block' && { blocked }) }
    case 'output': {
      if (action === 'record') return state
      const { output: _read, ...next } = replaceAnswer(state, event)
      return action === 'block' ? { ...next, blocked } : next
    }
    case 'tool_input':
      // `tool_requests_collected` records what happens to the call.
      return state
    case 'tool_output':
      return action === 'record' ? state : replaceResult(state, event)
  }
}

function replaceInput(state: RunState, event: EventOf<'guardrail_tripped'>): RunState {
  const { index = -1, replacement = toWithheldText(event) } = event
  if (getMessage(state.history, index)?.role !== 'user') {
    throw createIllegalTransition(
      state,
      event,
      `the history holds no input at ${index} that it could replace`,
    )
  }
  const messages = readMessages(state.history).with(index, { role: 'user', parts: replacement })
  return { ...state, history: createHistory(messages) }
}

/** A blocked answer stays in the ledger; the history gets its replacement. */
function replaceAnswer(state: RunState, event: EventOf<'guardrail_tripped'>): CollectingState {
  if (state.phase !== 'collecting' || state.calls.length > 0) {
    throw createIllegalTransition(state, event, 'there is no answer that it could replace')
  }
  const parts = (event.replacement ?? toWithheldText(event)).flatMap((part) =>
    part.type === 'text' && part.text !== '' ? [part] : [],
  )
  const message: AssistantMessage = { ...state.reply.message, parts }
  // The history holds no empty message: neither an empty answer nor an empty replacement.
  const isInHistory = state.reply.message.parts.length > 0 && !state.reply.leftOut
  const before = readMessages(state.history).slice(0, isInHistory ? -1 : undefined)
  const history = createHistory(parts.length > 0 ? [...before, message] : before)
  // The new text has not been checked against the schema yet.
  const { fit: _unknown, leftOut: _before, ...reply } = state.reply
  return { ...state, history, lastText: joinText(parts), reply: { ...reply, message } }
}

function replaceResult(state: RunState, event: EventOf<'guardrail_tripped'>): RunState {
  const call = findCall(state, event.toolCallId ?? '')
  if (state.phase !== 'executing' || call?.result === undefined) {
    throw createIllegalTransition(state, event, 'there is no result that it could replace')
  }
  const content = event.replacement ?? toWithheldText(event)
  const result: ToolResult = { ...call.result, content }
  const calls = state.calls.map((each) => (each === call ? { ...call, result } : each))
  return { ...state, calls }
}

function toWithheldText({ guardrail }: EventOf<'guardrail_tripped'>): ReturnType<typeof toTextContent> {
  return toTextContent('denied', `The guardrail ${guardrail} withheld this.`)
}

/** The state in which those guardrails that `remains` names still have to look at the input. */
function withInputCheck(state: RunState, remains: (name: string) => boolean): RunState {
  const { inputCheck, ...rest } = state
  const guardrails = inputCheck?.guardrails.filter(remains) ?? []
  if (inputCheck === undefined || guardrails.length === 0) return rest
  return { ...state, inputCheck: { ...inputCheck, guardrails } }
}

/** Guardrails have checked: what waited for them may continue. */
function applyGuardrailsChecked(state: RunState, event: EventOf<'guardrails_checked'>): RunState {
  switch (event.on) {
    case 'input':
      return withInputCheck(state, (name) => !event.guardrails.includes(name))
    case 'output':
      if (state.phase !== 'collecting') throw createIllegalTransition(state, event, 'there is no answer')
      return { ...state, reply: { ...state.reply, guarded: true } }
    case 'tool_output':
      if (state.phase !== 'executing') throw createIllegalTransition(state, event, 'there are no results')
      return { ...state, resultsChecked: true }
    case 'tool_input':
      return state
  }
}

/** The answer fits its schema, or the model repairs it, or the repairs are used up. */
function applyOutputChecked(state: RunState, event: EventOf<'output_checked'>): RunState {
  if (state.phase !== 'collecting' || state.calls.length > 0)
    throw createIllegalTransition(state, event, 'there is no answer')
  const { valid, output, error, repair } = event
  const fit = { valid, ...(error !== undefined && { error }) }
  const next = { ...state, reply: { ...state.reply, fit } }
  if (valid && output !== undefined) {
    // If the answer was wrapped, its text is the unwrapped value.
    const lastText = state.definition.output?.wrapped ? toCanonicalJson(output) : state.lastText
    return { ...next, output: { value: output }, lastText }
  }
  if (valid || repair === undefined) return next
  return { ...withMessage(next, repair), inputSinceReply: true, repairs: state.repairs + 1 }
}
