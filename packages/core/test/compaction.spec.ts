import { describe, expect, it } from 'vitest'
import { type Message, joinText } from '@tallystick/core'

import { checkTranscript, testTool, type ScriptedStep } from '@tallystick/testkit'
import { ofType, stage } from './stage.ts'
import type { Compaction } from '../src/machine/rules.ts'

const look = testTool({ name: 'look', run: () => 'x'.repeat(2_000) })
const looking = (count: number): ScriptedStep[] => [
  ...Array.from({ length: count }, (_, index) => ({
    text: `Look ${index + 1}.`,
    toolCalls: [{ name: 'look', input: { index } }],
  })),
  { text: 'Done.' },
]
const compaction: Compaction = {
  maxContextTokens: 1_500,
  keepMessages: 2,
  summarize: (messages) => `Before: ${messages.map(({ role }) => role).join(', ')}.`,
}
const roles = (messages: readonly Message[]) => messages.map(({ role }) => role)

describe('a history that grows too long', () => {
  it('is shortened before the call, between turns, and the ledger says what was replaced', async () => {
    const {
      start,
      waitUntilSettled: settle,
      eventsOf,
      model,
    } = stage({ steps: looking(4), tools: [look], compaction })
    const run = start()
    expect(await settle(run.result)).toMatchObject({ reason: 'answered', text: 'Done.' })
    for (const { messages } of model.requests) expect(checkTranscript(messages)).toEqual([])
    const [first] = ofType(await eventsOf(run), 'context_compacted')
    expect(first?.tokensAfter).toBeLessThan(first?.tokensBefore ?? 0)
    expect(first?.tokensBefore).toBeGreaterThan(compaction.maxContextTokens)
    const shortened = model.requests.find(
      ({ messages }) => messages[0]?.role === 'user' && joinText(messages[0].parts).startsWith('Before'),
    )
    // The summary, and what the user asked for.
    expect(roles(shortened!.messages)).toEqual(['user', 'user', 'assistant', 'tool'])
  })

  it('never parts a message from its results, however few messages are to stay', async () => {
    const {
      start,
      waitUntilSettled: settle,
      model,
    } = stage({
      steps: looking(3),
      tools: [look],
      compaction: { ...compaction, keepMessages: 1 },
    })
    await settle(start().result)
    for (const { messages } of model.requests) expect(checkTranscript(messages)).toEqual([])
  })

  it('is shortened once when the provider says that it is too long, and the call is made again', async () => {
    const steps = looking(2)
    const {
      start,
      waitUntilSettled: settle,
      eventsOf,
      model,
    } = stage({
      steps: [...steps.slice(0, 2), { fail: 'context_overflow' }, { text: 'Done.' }],
      tools: [look],
      compaction: { ...compaction, maxContextTokens: 1e9 },
    })
    const run = start()
    expect(await settle(run.result)).toMatchObject({ reason: 'answered', text: 'Done.' })
    expect(ofType(await eventsOf(run), 'context_compacted')).toHaveLength(1)
    expect(roles(model.requests[2]!.messages)).toEqual(['user', 'assistant', 'tool', 'assistant', 'tool'])
    expect(roles(model.requests[3]!.messages)).toEqual(['user', 'user', 'assistant', 'tool'])
  })

  it('that cannot be made to fit ends the run as context_overflow, with the history intact', async () => {
    const {
      start,
      waitUntilSettled: settle,
      eventsOf,
      model,
    } = stage({
      steps: [...looking(2).slice(0, 2), { fail: 'context_overflow' }, { fail: 'context_overflow' }],
      tools: [look],
      compaction: { ...compaction, maxContextTokens: 1e9 },
    })
    const run = start()
    expect(await settle(run.result)).toMatchObject({ status: 'done', reason: 'context_overflow' })
    expect(model.requests).toHaveLength(4)
    expect(ofType(await eventsOf(run), 'tool_result')).toHaveLength(2)
  })

  it('without a compaction ends at the provider’s word', async () => {
    const { start, waitUntilSettled: settle, model } = stage({ steps: [{ fail: 'context_overflow' }] })
    expect(await settle(start().result)).toMatchObject({ reason: 'context_overflow' })
    expect(model.requests).toHaveLength(1)
  })
})
