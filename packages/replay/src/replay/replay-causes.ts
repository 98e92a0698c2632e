import { type Agent, type Clock, type RunState, type RuntimeEvent } from '@tallystick/core'
import { answerVerdict, checkCalls, definitionInRun, definitionNow } from '@tallystick/core/kit'
import { chanceOf, recoverMessage, type Stamp } from '@tallystick/core/machine'
import { causeOf, type Command, type Signal } from '@tallystick/core/vocabulary'

import { recordedAnswers, recordedCallGuardrails } from './replay-checks.ts'
import { replayedChecks, type ReplayContext } from './replay-context.ts'
import type { DefinitionFields } from './definition-fields.ts'

/** The progress of a replay, and the events that it follows. */
export interface ReplayPlace {
  readonly before: RunState | undefined
  readonly recorded: readonly RuntimeEvent[]
  /** The index of the next event. */
  readonly index: number
  readonly agent: Agent<unknown>
  readonly fields: DefinitionFields
  readonly given: ReplayContext
}

/**
 * The command or signal that the next event followed from, as the facts on record say it; `undefined` where the record
 * ends before all of it was said. Whether calls may run and answers fit is asked of the agent's tools and schema as they
 * are now.
 */
export async function messageAt(place: ReplayPlace): Promise<Command | Signal | undefined> {
  const { before, recorded, index, agent, fields } = place
  const event = recorded[index] as RuntimeEvent
  if (causeOf(event) === 'calls_checked') return before && (await checkOf(before, place))
  if (event.type === 'output_checked') return before && (await answerOf(before, agent))
  const message = recoverMessage(before, { recorded, index })
  if (message?.type !== 'start' && message?.type !== 'resume') return message
  const given = message.type === 'start' ? message.givenModel : before?.givenModel
  const now = fields(definitionNow(agent, message.definition), message.definition)
  return { ...message, definition: definitionInRun(now, given) }
}

/** When the next event was decided, and by what chance. */
export function stampAt({
  before,
  recorded,
  index,
}: Pick<ReplayPlace, 'before' | 'recorded' | 'index'>): Stamp {
  const event = recorded[index] as RuntimeEvent
  const { at } = event
  if (before && event.type === 'tool_attempt_failed') return { at, random: chanceOf(before, event) }
  if (before?.phase !== 'streaming' || !causeOf(event).startsWith('model_')) return { at, random: 0 }
  // What the attempt used may be settled in front of its failure.
  const failed = event.type === 'usage_updated' && event.estimated ? recorded[index + 1] : event
  return { at, random: failed?.type === 'model_stream_failed' ? chanceOf(before, failed) : 0 }
}

/** The check of a reply's calls, made again. */
async function checkOf(
  state: RunState,
  { recorded, index, agent, given }: ReplayPlace,
): Promise<Signal | undefined> {
  if (state.phase !== 'collecting') return undefined
  const found: Signal[] = []
  const { calls, reply } = state
  const context = { state, context: given.context, clock: noTimer }
  const { offered } = reply
  const guardrails = recordedCallGuardrails(recorded, index)
  const answering = recordedAnswers(recorded, index)
  const checks = replayedChecks(agent, given, { recorded, from: index })
  await checkCalls(
    calls,
    { ...checks, guardrails },
    { ...context, answering, ...(offered && { offered }) },
    (signal) => found.push(signal),
  )
  return found[0]
}

/** The check of an answer, made again. */
async function answerOf(state: RunState, agent: Agent<unknown>): Promise<Signal | undefined> {
  if (state.phase !== 'collecting') return undefined
  const verdict = await answerVerdict(state, { agent, clock: noTimer })
  return { type: 'output_checked', turn: state.turn, verdict }
}

/** Nothing that a replay asks may take time. */
const noTimer: Clock = { now: () => 0, schedule: () => () => {} }
