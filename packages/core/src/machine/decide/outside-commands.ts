import type { Cause } from '../../vocabulary/events/cause.ts'
import type { OutsideCommand, OutsideCommandOf } from '../../vocabulary/events/command.ts'
import type { RuntimeEvent } from '../../vocabulary/events/event.ts'
import { boundOfLimit } from '../../vocabulary/limits/grant.ts'
import { omitUndefined } from '../../vocabulary/values/omit-undefined.ts'
import { correctMediaTypes, correctMessage } from '../../vocabulary/model/media-type.ts'
import { nothing, refusal, type Decision, type Refusal } from '../state/decision.ts'
import type { RunState } from '../state/state.ts'
import { findCall } from '../state/state-views.ts'
import { decideApproval, decideDenial, recordedDecision, recordsDecision } from './decide-approval.ts'

/** What the machine knows of an outside command of one type: the decision about it, and the ways back from the record. */
interface CommandRules<T extends OutsideCommand['type'] = OutsideCommand['type']> {
  /** Returns what follows from the command in a run that is not done. */
  decide(state: RunState, command: OutsideCommandOf<T>, at: number): Decision
  /** The inverse of `decide`: returns the command that an event records; `undefined` where the event records none of this type. */
  recover(event: RuntimeEvent): OutsideCommandOf<T> | undefined
  /** Returns whether an event records this very command, by what the event says. */
  isRecordedBy(event: RuntimeEvent, command: OutsideCommandOf<T>): boolean
  /** Why it is refused, where another process has refused it and only the record tells. */
  readonly usualRefusal: Refusal['code']
}

/** EVERY OUTSIDE COMMAND once: what follows from it, and how the record of a run gives it back. */
const outsideCommands: { readonly [T in OutsideCommand['type']]: CommandRules<T> } = {
  steer: {
    decide: decideInput,
    recover(event) {
      const input = recordedInput(event)
      return input && { type: 'steer', ...input }
    },
    isRecordedBy: recordsInput,
    usualRefusal: 'cancelled',
  },
  queue: {
    decide: decideInput,
    recover(event) {
      const input = recordedInput(event)
      return input && { type: 'queue', ...input }
    },
    isRecordedBy: recordsInput,
    usualRefusal: 'cancelled',
  },
  approve: {
    decide: decideApproval,
    recover(event) {
      if (event.type !== 'approval_decided') return undefined
      const { input, reason } = event
      return { type: 'approve', ...recordedDecision(event), ...omitUndefined({ input, reason }) }
    },
    isRecordedBy: recordsDecision,
    usualRefusal: 'not_awaiting_approval',
  },
  deny: {
    decide: decideDenial,
    recover(event) {
      if (event.type !== 'approval_decided') return undefined
      return { type: 'deny', ...recordedDecision(event), reason: event.reason ?? '' }
    },
    isRecordedBy: recordsDecision,
    usualRefusal: 'not_awaiting_approval',
  },
  settle: {
    decide: decideSettle,
    recover(event) {
      if (event.type !== 'tool_result') return undefined
      const { toolCallId, outcome, content, child, settled } = event
      if (outcome !== 'success' && outcome !== 'failed') return undefined
      return { type: 'settle', toolCallId, outcome, content, ...omitUndefined({ child }), ...settled }
    },
    isRecordedBy: (event, { toolCallId }) => event.type === 'tool_result' && event.toolCallId === toolCallId,
    usualRefusal: 'not_deferred',
  },
  cancel: {
    decide(state, { by, reason }) {
      if (state.cancel)
        return refusal(
          'already_cancelled',
          `Run ${state.runId} is being cancelled already. Wait for its result.`,
        )
      return { facts: [{ type: 'cancel_requested', turn: state.turn, ...omitUndefined({ by, reason }) }] }
    },
    recover(event) {
      if (event.type !== 'cancel_requested') return undefined
      return { type: 'cancel', ...omitUndefined({ by: event.by, reason: event.reason }) }
    },
    isRecordedBy: (event) => event.type === 'cancel_requested',
    usualRefusal: 'already_cancelled',
  },
  raise_limit: {
    decide: decideRaiseLimit,
    recover(event) {
      if (event.type !== 'limit_raised') return undefined
      const { limit, max, by, reason } = event
      return { type: 'raise_limit', limit, max, by, ...omitUndefined({ reason }) }
    },
    isRecordedBy: (event, { limit, max }) =>
      event.type === 'limit_raised' && event.limit === limit && event.max === max,
    usualRefusal: 'not_raised',
  },
}

/** Returns whether a cause is an outside command. */
export function isOutsideCause(cause: Cause): cause is OutsideCommand['type'] {
  return Object.hasOwn(outsideCommands, cause)
}

/** Returns what the machine knows of commands of a type. */
export function rulesOfCommand<T extends OutsideCommand['type']>(type: T): CommandRules<T> {
  return outsideCommands[type]
}

/** Returns whether an event records the input of a command, by its receipt. */
export function recordsInput(event: RuntimeEvent, command: OutsideCommand): boolean {
  const isInput = command.type === 'steer' || command.type === 'queue'
  return isInput && event.type === 'input_received' && event.receipt === command.receipt
}

function decideInput(
  state: RunState,
  { type: delivery, message, receipt }: OutsideCommandOf<'steer' | 'queue'>,
): Decision {
  if (state.cancel) {
    const message = `Run ${state.runId} is being cancelled and takes no more input. Wait for its result, and give the input to the next run.`
    return refusal('cancelled', message)
  }
  // The same input once more: it has its place already.
  if (state.pendingInputs.some((input) => input.inputId === receipt)) return nothing
  const corrected = correctMessage(message)
  return { facts: [{ type: 'input_received', turn: state.turn, message: corrected, delivery, receipt }] }
}

/** The fields that both input commands share, as an event records them. */
function recordedInput(
  event: RuntimeEvent,
): Pick<OutsideCommandOf<'steer' | 'queue'>, 'message' | 'receipt'> | undefined {
  if (event.type !== 'input_received') return undefined
  return { message: event.message, receipt: event.receipt ?? '' }
}

function decideRaiseLimit(state: RunState, command: OutsideCommandOf<'raise_limit'>): Decision {
  const { limit, max, by, reason } = command
  const now = state.limits[limit]
  const bound = boundOfLimit(state.parent?.grant ?? {}, limit)
  if (bound !== undefined && max > bound) {
    const message = `Run ${state.runId} is a child of run ${state.parent?.runId}, which has granted it ${bound} of ${limit}; ${max} is more. Raise the limit of that run, and let it ask again.`
    return refusal('not_raised', message)
  }
  if (now !== undefined && max > now) {
    return {
      facts: [{ type: 'limit_raised', turn: state.turn, limit, max, by, ...omitUndefined({ reason }) }],
    }
  }
  const remedy = now === undefined ? 'What is not set needs no raise.' : `Give more than ${now}.`
  const message = `The limit ${limit} of run ${state.runId} is ${now ?? 'not set'}; ${max} would not raise it. ${remedy}`
  return refusal('not_raised', message)
}

function decideSettle(state: RunState, command: OutsideCommandOf<'settle'>): Decision {
  const call = findCall(state, command.toolCallId)
  if (call?.status !== 'deferred') {
    const message = `Tool call ${command.toolCallId} of run ${state.runId} does not wait to be settled; show the run to see which do.`
    return refusal('not_deferred', message)
  }
  const { toolCallId, name } = call
  const { outcome, child, by, reason } = command
  const content = correctMediaTypes(command.content)
  if (call.child !== undefined && child === undefined) {
    const message = `Tool call ${toolCallId} of run ${state.runId} is the work of run ${call.deferred?.externalId}: decide what that run waits for, or cancel it.`
    return refusal('not_deferred', message)
  }
  const result = { type: 'tool_result' as const, turn: state.turn, toolCallId, name, outcome, content }
  const settled = by === undefined && reason === undefined ? undefined : omitUndefined({ by, reason })
  return { facts: [{ ...result, ...omitUndefined({ child, settled }) }] }
}
