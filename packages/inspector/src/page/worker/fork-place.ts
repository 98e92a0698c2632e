import { joinText } from '@tallystick/core'
import { readMessages, requireForkable } from '@tallystick/core/internal'
import { openTurnCalls } from '@tallystick/core/machine'
import type { RunModel } from './run-model.ts'

/** A place at which a fork begins, and what can be changed there. */
export interface ForkPlace {
  /** Why no fork can begin there. */
  readonly fault?: string
  /** The user's last message, if it can be replaced there. */
  readonly input?: string
  /** Calls that are started there and have no result. */
  readonly calls: readonly { readonly toolCallId: string; readonly name: string }[]
  readonly agent: string
  readonly instructions: string
  readonly model: string
  readonly tools: readonly string[]
}

export function describeForkPlace(model: RunModel, seq: number): ForkPlace {
  const state = model.stateAt(seq)
  if (state === undefined) {
    return {
      fault: `There is no event ${seq}.`,
      calls: [],
      agent: '',
      instructions: '',
      model: '',
      tools: [],
    }
  }
  const { agent, definition, phase } = state
  const place = {
    agent,
    instructions: definition.instructions,
    model: (state.model ?? definition.model).modelId,
    tools: definition.tools.map(({ name }) => name),
    calls: openTurnCalls(state)
      .filter(({ status }) => status === 'started' || status === 'deferred')
      .map(({ toolCallId, name }) => ({ toolCallId, name })),
  }
  try {
    requireForkable(state, state.runId, seq)
  } catch (error) {
    return { ...place, fault: (error as Error).message }
  }
  // Within a turn the history cannot be edited.
  const isWithinTurn = phase === 'streaming' || phase === 'executing' || phase === 'collecting'
  const last = isWithinTurn ? undefined : readMessages(state.history).findLast(({ role }) => role === 'user')
  return { ...place, ...(last?.role === 'user' && { input: joinText(last.parts) }) }
}
