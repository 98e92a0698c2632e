import { expect } from 'vitest'
import { joinText, type Message, type RunResult } from '@tallystick/core'
import type { ToolResult } from '@tallystick/core/vocabulary'
import { checkTranscript, seededRandom } from '@tallystick/testkit'
import { checkedRun, stage, type Stage, type StageOptions } from './stage.ts'

const sessionId = 'conversation'
let processes = 0

/** One more process, whose run ids are its own. What it shares with others is the ledger, if it is given one. */
export function newProcess(options: StageOptions = {}): Stage {
  return stage({ random: seededRandom(++processes), ...options })
}

/** Starts the next run of the conversation. */
export function begin({ runtime, agent }: Stage, input = 'Go.'): ReturnType<Stage['start']> {
  return runtime.run(agent, input, { sessionId })
}

/** Plays the next run of the conversation until it rests. */
export async function converse(set: Stage, input?: string): Promise<RunResult> {
  return await set.waitUntilSettled(begin(set, input).result)
}

/**
 * The first request of the next run of the conversation, when the user says one thing more to a process that has
 * nothing but the ledger: all that was said and done, in a form that a provider accepts.
 */
export async function nextRequest({ ledger, clock, agent, runtime }: Stage): Promise<readonly Message[]> {
  const past = await runtime.session(sessionId).history()
  const next = newProcess({ ledger, clock, tools: agent.tools, steps: [{ text: 'Noted.' }] })
  const result = await converse(next, 'And now?')
  expect(result).toMatchObject({ reason: 'answered', text: 'Noted.', toolCalls: 0 })
  const messages = next.model.requests[0]!.messages
  const said: Message = { role: 'user', parts: [{ type: 'text', text: 'And now?' }] }
  expect(messages).toEqual([...past!.messages, said])
  expect(checkTranscript(messages)).toEqual([])
  for (const runId of [past!.runId, result.runId]) checkedRun(await next.eventsOf(runId))
  return messages
}

/** The results of tool calls, in order. */
export const resultsOf = (messages: readonly Message[]): readonly ToolResult[] =>
  messages.flatMap((message) => (message.role === 'tool' ? message.results : []))

/** Results as `name outcome: text`. */
export const shown = (results: readonly ToolResult[]): readonly string[] =>
  results.map(({ name, outcome, content }) => `${name} ${outcome}: ${joinText(content)}`)

/** A conversation as a person reads it: what was said, what was asked of tools, what they answered. */
export const readable = (messages: readonly Message[]): readonly string[] =>
  messages.flatMap((message) => {
    if (message.role === 'tool') return shown(message.results)
    const asked = message.parts.flatMap((part) => (part.type === 'tool_call' ? [`asks ${part.name}`] : []))
    const said = joinText(message.parts)
    return [...(said === '' ? [] : [`${message.role}: ${said}`]), ...asked]
  })
