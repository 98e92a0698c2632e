import type { Ledger, RunId } from '@tallystick/core'
import type { ToolCallId } from '@tallystick/core/vocabulary'
import { openTurnCalls, transcript } from '@tallystick/core/machine'
import { foldTo } from '@tallystick/ledger'
import { CommandError } from '../command/exit-code.ts'

const maxCallsNamed = 5

/** A call that waits, and the run that it is of. */
interface WaitingCall {
  readonly runId: RunId
  readonly toolCallId: ToolCallId
}

/** Where a call is looked for. */
export interface CallSearch<Waiting extends WaitingCall> {
  readonly ledger: Ledger
  /** The run that was named. */
  readonly named: RunId
  readonly waiting: readonly Waiting[]
  /** What the calls wait for, such as `an approval`. */
  readonly awaited: string
  /** The command that shows the run. */
  readonly show: string
}

/**
 * Finds the one call that waits by its id, or by an end of it that no other call of its run has, whether that waits or
 * not. Throws a `CommandError`: `usage` where the end is empty or fits several calls, `not_found` where no call waits
 * that it fits.
 */
export async function findCall<Waiting extends WaitingCall>(
  given: string,
  search: CallSearch<Waiting>,
): Promise<Waiting> {
  const { ledger, named, waiting, awaited, show } = search
  const ids = waiting.map(({ toolCallId }) => toolCallId).join(', ') || 'none'
  if (given === '') {
    throw new CommandError('usage', `Name the call by its id, or by an end of it. Waiting: ${ids}.`)
  }
  const whole = waiting.find(({ toolCallId }) => toolCallId === given)
  if (whole) return whole
  const [call, ...others] = waiting.filter(({ toolCallId }) => toolCallId.endsWith(given))
  if (call === undefined) {
    throw new CommandError(
      'not_found',
      `No call ${given} of run ${named} or of its child runs waits for ${awaited}. Waiting: ${ids}. See the run: ${show}`,
    )
  }
  const runIds = new Set([named, ...waiting.map(({ runId }) => runId)])
  const fitting = new Set([call, ...others].map(({ toolCallId }) => toolCallId))
  for (const runId of runIds) {
    for (const id of await callsOf(ledger, runId)) if (id.endsWith(given)) fitting.add(id)
  }
  if (fitting.size === 1) return call
  const some = [...fitting].slice(0, maxCallsNamed).join(', ')
  throw new CommandError(
    'usage',
    `${given} fits ${fitting.size} calls (${some}). Give more of the id. Waiting: ${ids}.`,
  )
}

/** The calls of a run so far. */
async function callsOf(ledger: Ledger, runId: RunId): Promise<readonly ToolCallId[]> {
  const state = await foldTo(ledger, runId)
  const earlier = transcript(state).flatMap((message) =>
    message.role === 'assistant'
      ? message.parts.flatMap((part) => (part.type === 'tool_call' ? [part.toolCallId] : []))
      : [],
  )
  return [...earlier, ...openTurnCalls(state).map(({ toolCallId }) => toolCallId)]
}
