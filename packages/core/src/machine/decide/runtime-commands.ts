import type { AgentDefinition } from '../../vocabulary/agent/agent-definition.ts'
import type { ResumeCommand, StartCommand } from '../../vocabulary/events/command.ts'
import type { EventOf, EventType, Fact, RuntimeEvent } from '../../vocabulary/events/event.ts'
import { givenOf } from '../../vocabulary/agent/run-given.ts'
import { omitUndefined } from '../../vocabulary/values/omit-undefined.ts'
import { settledUsage } from '../limits/settled-usage.ts'
import { refusal, type Decision } from '../state/decision.ts'
import type { RunState } from '../state/state.ts'
import { openTurnCalls } from '../state/state-views.ts'
import type { RecordedPosition } from './recorded-position.ts'

/** Begins a run that does not exist yet. */
export function decideStart(state: RunState | undefined, command: StartCommand): Decision {
  if (state)
    return refusal(
      'run_exists',
      `Run ${state.runId} exists already. Resume it, or start one under another id.`,
    )
  const { agent, definition, limits, retry, input, sessionId, sessionPlace, parent, subject } = command
  const { history = [], edits, uncheckedFrom, withContext } = command
  return {
    facts: [
      {
        type: 'run_started',
        turn: 0,
        agent,
        definition,
        limits,
        retry,
        ...givenOf(command),
        ...omitUndefined({ sessionId, sessionPlace, parent, subject, withContext }),
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
export function decideResume(state: RunState, { why, definition }: ResumeCommand): Decision {
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

/** The inverse of `decideResume`. */
export function recoverResume(
  event: RuntimeEvent,
  definition: AgentDefinition | undefined,
): ResumeCommand | undefined {
  if (event.type !== 'run_resumed') return undefined
  const resumed = event.definition ?? definition
  return resumed && { type: 'resume', why: event.why, definition: resumed }
}

/** The inverse of `decideStart`. */
export function recoverStart(position: RecordedPosition): StartCommand | undefined {
  const event = position.recorded[position.index]
  if (event?.type !== 'run_started') return undefined
  const { runId, agent, definition, limits, retry, withContext } = event
  const { sessionId, sessionPlace, parent, subject } = event
  const { message, receipt } = besideStart('input_received', position) ?? {}
  if (message === undefined) return undefined
  const { messages: history, uncheckedFrom } = besideStart('history_carried', position) ?? {}
  const { edits, by, reason } = besideStart('history_edited', position) ?? {}
  return {
    type: 'start',
    runId,
    agent,
    definition,
    limits,
    retry,
    input: message,
    ...givenOf(event),
    ...omitUndefined({
      receipt,
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
