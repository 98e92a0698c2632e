import type { Cause } from '../../vocabulary/events/cause.ts'
import type { Command, OutsideCommand } from '../../vocabulary/events/command.ts'
import type { EventOf, EventType, RuntimeEvent } from '../../vocabulary/events/event.ts'
import { omitUndefined } from '../../vocabulary/values/omit-undefined.ts'
import type { RecordedPosition } from './recorded-position.ts'
import type { RunState } from '../state/state.ts'

type CommandCause = Command['type'] & Cause

const commandCauses: ReadonlySet<Cause> = new Set<CommandCause>([
  ...(['start', 'resume', 'steer', 'queue', 'approve', 'deny', 'settle', 'cancel', 'raise_limit'] as const),
])

/** Whether a command decided it. */
export function isCommandCause(cause: Cause): cause is CommandCause {
  return commandCauses.has(cause)
}

/** The command that decided the events at a place. */
export function recoverCommand(
  state: RunState | undefined,
  cause: CommandCause,
  place: RecordedPosition,
): Command | undefined {
  const event = place.recorded[place.index]
  if (cause === 'start') return event?.type === 'run_started' ? startOf(event, place) : undefined
  if (cause !== 'resume') return event && outsideCommand(cause, event)
  if (event?.type !== 'run_resumed') return undefined
  const definition = event.definition ?? state?.definition
  return definition && { type: cause, why: event.why, definition }
}

function outsideCommand(
  cause: Exclude<CommandCause, 'start' | 'resume'>,
  event: RuntimeEvent,
): Command | undefined {
  switch (cause) {
    case 'steer':
    case 'queue': {
      if (event.type !== 'input_received') return undefined
      return { type: cause, message: event.message, receipt: event.receipt ?? '' }
    }
    case 'approve':
    case 'deny':
      return event.type === 'approval_decided' ? approvalOf(cause, event) : undefined
    case 'settle':
      return event.type === 'tool_result' ? settlingOf(event) : undefined
    case 'cancel': {
      if (event.type !== 'cancel_requested') return undefined
      return { type: cause, ...omitUndefined({ by: event.by, reason: event.reason }) }
    }
    case 'raise_limit': {
      if (event.type !== 'limit_raised') return undefined
      return { type: cause, limit: event.limit, max: event.max, by: event.by }
    }
  }
}

function approvalOf(type: 'approve' | 'deny', event: EventOf<'approval_decided'>): Command {
  const { toolCallId, by, via, input, attempt, inputDigest, reason = '' } = event
  const decision = { toolCallId, by, attempt, inputDigest, ...omitUndefined({ via }) }
  return type === 'deny' ? { type, ...decision, reason } : { type, ...decision, ...omitUndefined({ input }) }
}

function settlingOf(event: EventOf<'tool_result'>): Command | undefined {
  const { toolCallId, outcome, content, child } = event
  if (outcome !== 'success' && outcome !== 'failed') return undefined
  return { type: 'settle', toolCallId, outcome, content, ...omitUndefined({ child }) }
}

function startOf(event: EventOf<'run_started'>, place: RecordedPosition): Command | undefined {
  const { runId, agent, definition, limits, retry, modelSettings, withContext } = event
  const { sessionId, sessionPlace, parent, subject } = event
  const { message, receipt } = besideStart('input_received', place) ?? {}
  if (message === undefined) return undefined
  const { messages: history, uncheckedFrom } = besideStart('history_carried', place) ?? {}
  const { edits, by, reason } = besideStart('history_edited', place) ?? {}
  return {
    type: 'start',
    runId,
    agent,
    definition,
    limits,
    retry,
    input: message,
    ...omitUndefined({
      receipt,
      modelSettings,
      sessionId,
      sessionPlace,
      parent,
      subject,
      withContext,
      history,
      uncheckedFrom,
    }),
    ...(edits && { edits: { edits, ...omitUndefined({ by, reason }) } }),
  }
}

/** One of the facts that a start puts after `run_started`: at most three, the input last. */
function besideStart<T extends EventType>(
  type: T,
  { recorded, index }: RecordedPosition,
): EventOf<T> | undefined {
  const beside = recorded.slice(index + 1, index + 4)
  const input = beside.findIndex((event) => event.type === 'input_received')
  return beside.slice(0, input + 1).find((event): event is EventOf<T> & typeof event => event.type === type)
}

/** Returns whether an event records the input of a command, by its receipt. */
export function recordsInput(event: RuntimeEvent, command: OutsideCommand): boolean {
  const isInput = command.type === 'steer' || command.type === 'queue'
  return isInput && event.type === 'input_received' && event.receipt === command.receipt
}

/**
 * Returns whether an event records a command, by what the event says: processes of older releases record no key of the
 * inbox.
 */
export function recordsCommand(event: RuntimeEvent, command: OutsideCommand): boolean {
  switch (command.type) {
    case 'approve':
    case 'deny':
      return (
        event.type === 'approval_decided' &&
        event.toolCallId === command.toolCallId &&
        event.by === command.by &&
        event.approved === (command.type === 'approve')
      )
    case 'settle':
      return event.type === 'tool_result' && event.toolCallId === command.toolCallId
    case 'steer':
    case 'queue':
      return recordsInput(event, command)
    case 'cancel':
      return event.type === 'cancel_requested'
    case 'raise_limit':
      return event.type === 'limit_raised' && event.limit === command.limit && event.max === command.max
  }
}
