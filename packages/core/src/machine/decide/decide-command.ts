import type {
  AnsweredQuestion,
  Command,
  OutsideCommand,
  ResumeCommand,
  StartCommand,
} from '../../vocabulary/events/command.ts'
import type { Fact } from '../../vocabulary/events/event.ts'
import { boundOfLimit } from '../../vocabulary/limits/grant.ts'
import { omitUndefined } from '../../vocabulary/values/omit-undefined.ts'
import { changedInputText } from '../prompt/changed-input.ts'
import { digestOf } from '../../vocabulary/values/digest.ts'
import { nothing, type Decision, type Refusal } from '../state/decision.ts'
import { settledUsage } from '../limits/settled-usage.ts'
import type { Call, RunState } from '../state/state.ts'
import { findCall, openTurnCalls } from '../state/state-views.ts'

/** What follows from a command. `undefined` is the state of a run that does not exist yet. */
export function decideCommand(state: RunState | undefined, command: Command, at: number): Decision {
  if (command.type === 'start') return decideStart(state, command)
  if (state === undefined) return refusal('not_supported', 'The run does not exist yet; start it first.')
  if (state.phase === 'done') {
    return refusal(
      'run_finished',
      `Run ${state.runId} is finished (${state.reason}); nothing can be asked of it any more.`,
    )
  }
  switch (command.type) {
    case 'resume':
      return decideResume(state, command)
    case 'approve':
    case 'deny':
      return decideApproval(state, command, at)
    case 'cancel': {
      if (state.cancel) return refusal('already_cancelled', `Run ${state.runId} is being cancelled already.`)
      const { by, reason } = command
      return {
        facts: [
          {
            type: 'cancel_requested',
            turn: state.turn,
            ...(by !== undefined && { by }),
            ...(reason !== undefined && { reason }),
          },
        ],
      }
    }
    case 'settle':
      return decideSettle(state, command)
    case 'raise_limit':
      return decideRaiseLimit(state, command)
    case 'steer':
    case 'queue': {
      if (state.cancel)
        return refusal('cancelled', `Run ${state.runId} is being cancelled and takes no more input.`)
      const { type: delivery, message, receipt } = command
      // The same input once more: it has its place already.
      if (state.pendingInputs.some((input) => input.inputId === receipt)) return nothing
      return { facts: [{ type: 'input_received', turn: state.turn, message, delivery, receipt }] }
    }
  }
}

/** Why a command of each type is refused, where another process has refused it and only the record tells. */
export const usualRefusals: Readonly<Record<OutsideCommand['type'], Refusal['code']>> = {
  approve: 'not_awaiting_approval',
  deny: 'not_awaiting_approval',
  settle: 'not_deferred',
  steer: 'cancelled',
  queue: 'cancelled',
  cancel: 'already_cancelled',
  raise_limit: 'not_raised',
}

function refusal(code: Refusal['code'], message: string): Decision {
  return { refused: { code, message } }
}

function decideStart(state: RunState | undefined, command: StartCommand): Decision {
  if (state) return refusal('run_exists', `Run ${state.runId} exists already.`)
  const { agent, definition, limits, retry, input, sessionId, sessionPlace, parent, subject } = command
  const { history = [], edits, uncheckedFrom, modelSettings, withContext } = command
  return {
    facts: [
      {
        type: 'run_started',
        turn: 0,
        agent,
        definition,
        limits,
        retry,
        ...omitUndefined({ modelSettings, sessionId, sessionPlace, parent, subject, withContext }),
      },
      ...(history.length > 0
        ? [
            {
              type: 'history_carried' as const,
              turn: 0,
              messages: history,
              ...omitUndefined({ uncheckedFrom }),
            },
          ]
        : []),
      ...(edits && edits.edits.length > 0 ? [{ type: 'history_edited' as const, turn: 0, ...edits }] : []),
      {
        type: 'input_received',
        turn: 0,
        message: input,
        delivery: 'start',
        ...omitUndefined({ receipt: command.receipt }),
      },
    ],
  }
}

/**
 * Records what a resume finds: the take-over, calls in doubt, and the failure of an attempt that no process
 * continues.
 */
function decideResume(state: RunState, { why, definition }: ResumeCommand): Decision {
  const inDoubt = openTurnCalls(state).filter(
    (call) => call.status === 'started' || call.status === 'in_doubt',
  )
  const facts: Fact[] = [
    {
      type: 'run_resumed',
      turn: state.turn,
      why,
      inDoubt: inDoubt.map((call) => call.toolCallId),
      ...(definition.digest !== state.definition.digest && { definition }),
    },
  ]
  if (state.phase === 'streaming' && !state.attempt.failed) {
    facts.push(...settledUsage(state, 'interrupted'), {
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

function decideRaiseLimit(state: RunState, command: Command & { readonly type: 'raise_limit' }): Decision {
  const { limit, max, by } = command
  const now = state.limits[limit]
  const bound = boundOfLimit(state.parent?.grant ?? {}, limit)
  if (bound !== undefined && max > bound) {
    const message = `Run ${state.runId} works for run ${state.parent?.runId}, which has granted it ${bound} of ${limit}; ${max} is more. Raise the limit of that run, and let it ask again.`
    return refusal('not_raised', message)
  }
  if (now !== undefined && max > now) {
    return { facts: [{ type: 'limit_raised', turn: state.turn, limit, max, by }] }
  }
  const message = `The limit ${limit} of run ${state.runId} is ${now ?? 'not set'}; ${max} would not raise it.`
  return refusal('not_raised', message)
}

function decideSettle(state: RunState, command: Command & { readonly type: 'settle' }): Decision {
  const call = findCall(state, command.toolCallId)
  if (call?.status !== 'deferred') {
    const message = `Tool call ${command.toolCallId} of run ${state.runId} does not wait to be settled; show the run to see which do.`
    return refusal('not_deferred', message)
  }
  const { toolCallId, name } = call
  const { outcome, content, child } = command
  if (call.child !== undefined && child === undefined) {
    const message = `Tool call ${toolCallId} of run ${state.runId} is the work of run ${call.deferred?.externalId}: decide what that run waits for, or cancel it.`
    return refusal('not_deferred', message)
  }
  const result = { type: 'tool_result' as const, turn: state.turn, toolCallId, name, outcome, content }
  return { facts: [{ ...result, ...omitUndefined({ child }) }] }
}

/** The refusal of a decision about another start of the call, or about another input, than is asked about now. */
function refuseStaleDecision(
  { toolCallId, attempts, inputDigest }: Call,
  { attempt = 1, inputDigest: shown = inputDigest }: AnsweredQuestion,
): Decision | undefined {
  if (attempt === attempts + 1 && shown === inputDigest) return undefined
  return refusal(
    'not_awaiting_approval',
    `This decision is about start ${attempt} of tool call ${toolCallId} and what was shown then. Start ${attempts + 1} ` +
      'is asked about now. Look at the pending approval, and decide with its attempt and input digest.',
  )
}

function decideApproval(
  state: RunState,
  command: Command & { readonly type: 'approve' | 'deny' },
  at: number,
): Decision {
  const call = findCall(state, command.toolCallId)
  if (call === undefined) {
    return refusal(
      'unknown_call',
      `Run ${state.runId} has no open tool call ${command.toolCallId}; show the run to see which wait.`,
    )
  }
  if (call.status !== 'awaiting_approval' || call.inputDigest === undefined) {
    return refusal(
      'not_awaiting_approval',
      `Tool call ${call.toolCallId} does not wait for an approval; it is ${call.status}.`,
    )
  }
  if (call.expiresAt !== undefined && at >= call.expiresAt) {
    return refusal(
      'approval_expired',
      `The time to decide about tool call ${call.toolCallId} is over; it counts as denied.`,
    )
  }
  const stale = refuseStaleDecision(call, command)
  if (stale) return stale
  const fact = {
    type: 'approval_decided' as const,
    turn: state.turn,
    toolCallId: call.toolCallId,
    attempt: call.attempts + 1,
    by: command.by,
    inputDigest: call.inputDigest,
    ...omitUndefined({ via: command.via }),
  }
  if (command.type === 'deny') return { facts: [{ ...fact, approved: false, reason: command.reason }] }
  const { by, input } = command
  // The same input is no other one.
  if (input === undefined || digestOf(input) === digestOf(call.input)) {
    return { facts: [{ ...fact, approved: true }] }
  }
  const note = changedInputText(by, call.input, input)
  return { facts: [{ ...fact, approved: true, input, note }] }
}
