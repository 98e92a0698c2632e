// What limits, replies and failures lead to, found out by letting them.
import type { Limits, RunResult } from '@tallystick/core'
import type { FailureClass, LimitName, OnLimit, StopReason } from '@tallystick/core/vocabulary'
import { scriptedModel, type ScriptedReply, type ScriptedStep } from '@tallystick/core/testing'
import { play, type Probe } from './play.ts'

const look = { name: 'look', input: {} }
const behind: ScriptedReply = { text: 'Done.' }

/** The status of a run, in one word. */
function standing({ status, reason }: RunResult): string {
  return status === 'suspended' ? 'suspended' : `\`${reason}\``
}

/** What follows from a reply: the end of the run, or another turn. */
export async function afterReply(stopReason: StopReason): Promise<{ alone: string; withCall: string }> {
  const alone = await play([{ text: 'So.', stopReason }, behind])
  const withCall = await play([{ text: 'So.', toolCalls: [look], stopReason }, behind])
  const next = ({ result }: Probe): string => (result.turns > 1 ? 'the run continues' : standing(result))
  const settled = withCall.events.find((event) => event.type === 'tool_result')
  const fate = settled?.outcome === 'success' ? 'they run' : `\`${settled?.outcome}\``
  return { alone: next(alone), withCall: `${fate}, ${next(withCall)}` }
}

/** What follows from a failed model call: another attempt, another model, the end. */
export async function afterFailure(
  fail: FailureClass,
): Promise<{ triedAgain: boolean; fallbackAsked: boolean; end: string }> {
  const once = await play([{ fail }, behind])
  const lasting: ScriptedStep[] = [{ fail }, { fail }]
  const saved = await play(lasting, { fallbacks: [scriptedModel([behind], 'fallback')] })
  const given = await play(lasting)
  return {
    triedAgain: once.result.reason === 'answered',
    fallbackAsked: saved.result.reason === 'answered',
    end: standing(given.result),
  }
}

/** A reply that never ends the run of its own accord, and the limit that stops it. */
interface LimitProbe {
  readonly limits: Limits
  readonly reply: ScriptedReply
}

const limitProbes: { readonly [L in LimitName]: LimitProbe } = {
  maxTurns: { limits: { maxTurns: 2 }, reply: { toolCalls: [look] } },
  maxToolCalls: { limits: { maxToolCalls: 1 }, reply: { toolCalls: [look] } },
  maxToolCallsPerTurn: { limits: { maxToolCallsPerTurn: 1 }, reply: { toolCalls: [look, look] } },
  maxTotalTokens: spending({ maxTotalTokens: 1_800 }),
  maxTotalInputTokens: spending({ maxTotalInputTokens: 1_200 }),
  maxTotalOutputTokens: spending({ maxTotalOutputTokens: 300 }),
  maxCostUsd: spending({ maxCostUsd: 0.003 }),
  maxDurationMs: { limits: { maxDurationMs: 1_000 }, reply: { text: 'Thinking', hang: true } },
  maxRepeats: { limits: { maxRepeats: 1 }, reply: { toolCalls: [look] } },
}

function spending(limits: Limits): LimitProbe {
  return { limits, reply: { toolCalls: [look], usage: { inputTokens: 400, outputTokens: 100 } } }
}

/** What a limit leads to under a policy; without `limit_reached` on record it turned calls away and no more. */
export async function atLimit(limit: LimitName, onLimit: OnLimit): Promise<string> {
  const { limits, reply } = limitProbes[limit]
  const step: ScriptedStep = ({ toolChoice }) => (toolChoice.type === 'none' ? behind : reply)
  const patience = limit === 'maxToolCallsPerTurn' ? [reply, behind] : Array.from({ length: 9 }, () => step)
  const { result, events } = await play(patience, { limits: { maxRepeats: 99, ...limits, onLimit } })
  const met = events.find((event) => event.type === 'limit_reached')
  if (met?.limit !== limit) return 'the run continues'
  return result.text === behind.text ? `${standing(result)}, with an answer` : standing(result)
}
