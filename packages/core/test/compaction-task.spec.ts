import { describe, expect, it } from 'vitest'
import { type Message, joinText } from '@tallystick/core'

import {
  checkTranscript,
  scriptedModel,
  testTool,
  type ScriptedReply,
  type ScriptedStep,
} from '@tallystick/testkit'
import { checkedRun, ofType, stage } from './stage.ts'
import type { Compaction } from '../src/machine/rules.ts'

const look = testTool({ name: 'look', run: () => 'x'.repeat(400) })
/** Replies that ask for a look each; what the provider says that they took is far too little. */
const looking = (count: number): ScriptedReply[] =>
  Array.from({ length: count }, (_, index) => ({
    toolCalls: [{ name: 'look', input: { index } }],
    usage: { inputTokens: 3, outputTokens: 1 },
  }))
const overflow: ScriptedStep = { fail: 'context_overflow' }
const window: Compaction = { maxContextTokens: 1e9, keepMessages: 4 }
const said = (messages: readonly Message[]): readonly string[] =>
  messages.map((message) => (message.role === 'user' ? `user: ${joinText(message.parts)}` : message.role))
const leftOut = (count: number): string =>
  `user: (The ${count} oldest messages of this conversation were left out, because it grew too long. What the user asks for follows as it was said.)`

describe('a history that the provider calls too long', () => {
  it('is shortened though little was reported, and what the user asked for stays', async () => {
    const set = stage({
      steps: [...looking(3), overflow, { text: 'Done.' }],
      tools: [look],
      compaction: window,
    })
    const run = set.start('What is the weather in Seoul?')
    expect(await set.waitUntilSettled(run.result)).toMatchObject({ reason: 'answered', text: 'Done.' })
    const events = checkedRun(await set.eventsOf(run))
    const [compacted] = ofType(events, 'context_compacted')
    expect(compacted).toMatchObject({ replacedMessages: 3, taskAt: 0 })
    const { messages } = set.model.requests.at(-1)!
    expect(said(messages)).toEqual([
      ...[leftOut(2), 'user: What is the weather in Seoul?', 'assistant', 'tool', 'assistant', 'tool'],
    ])
    expect(checkTranscript(messages)).toEqual([])
  })

  it('is shortened more each time that the provider says so again, and ends when nothing is left to leave out', async () => {
    const steps = [...looking(6), overflow, overflow, { text: 'Done.' }]
    const set = stage({ steps, tools: [look], compaction: { ...window, keepMessages: 8 } })
    const run = set.start('Look.')
    expect(await set.waitUntilSettled(run.result)).toMatchObject({ reason: 'answered' })
    const kept = set.model.requests.slice(-3).map(({ messages }) => messages.length)
    expect(kept[0]! > kept[1]! && kept[1]! > kept[2]!).toBe(true)
    expect(said(set.model.requests.at(-1)!.messages)[1]).toBe('user: Look.')
    const endless = stage({
      steps: [...looking(6), ...Array.from({ length: 20 }, () => overflow)],
      tools: [look],
      compaction: window,
    })
    expect(await endless.play()).toMatchObject({ reason: 'context_overflow' })
    expect(endless.model.requests.length).toBeLessThan(6 + 6)
  })

  it('is shortened though fewer messages are there than were to stay', async () => {
    const steps = [...looking(2), overflow, { text: 'Done.' }]
    const set = stage({ steps, tools: [look], compaction: { ...window, keepMessages: 50 } })
    expect(await set.play()).toMatchObject({ reason: 'answered' })
    expect(set.model.requests.at(-1)!.messages.length).toBeLessThan(5)
  })
})

describe('a history that is shortened in time', () => {
  it('keeps the task through one compaction after the other, and the question of now in a session', async () => {
    const steps = [{ text: 'Hello.' }, ...looking(9), { text: 'Done.' }]
    const usage = { inputTokens: 500, outputTokens: 1 }
    const set = stage({
      steps: steps.map((step) => ({ ...step, usage })),
      ...{ tools: [look], compaction: { maxContextTokens: 600, keepMessages: 2 } },
    })
    await set.waitUntilSettled(set.runtime.run(set.agent, 'Hello!', { sessionId: 'chat' }).result)
    const run = set.runtime.run(set.agent, 'How warm is it?', { sessionId: 'chat' })
    expect(await set.waitUntilSettled(run.result)).toMatchObject({ text: 'Done.' })
    const compacted = ofType(checkedRun(await set.eventsOf(run)), 'context_compacted')
    expect(compacted.length).toBeGreaterThan(2)
    for (const { messages } of set.model.requests.slice(1)) {
      expect(said(messages).filter((line) => line === 'user: How warm is it?')).toHaveLength(1)
    }
  })

  it('keeps it beside what a model sums up, and as a guardrail has left it', async () => {
    const masked = 'Pay from card ****.'
    const usage = { inputTokens: 900, outputTokens: 1 }
    const set = stage({
      steps: [...looking(4), { text: 'Done.' }].map((step) => ({ ...step, usage })),
      tools: [look],
      compaction: {
        maxContextTokens: 600,
        keepMessages: 2,
        summarize: scriptedModel(
          Array.from({ length: 9 }, () => ({ text: 'They looked.' })),
          'sums-up',
        ),
      },
      guardrails: [
        { name: 'cards', on: 'input', check: () => ({ replace: [{ type: 'text', text: masked }] }) },
      ],
    })
    const run = set.start('Pay from card 4111 1111 1111 1111.')
    expect(await set.waitUntilSettled(run.result)).toMatchObject({ text: 'Done.' })
    expect(ofType(checkedRun(await set.eventsOf(run)), 'context_compacted').length).toBeGreaterThan(0)
    const last = set.model.requests.at(-1)!.messages
    expect(said(last).slice(0, 2)).toEqual([
      'user: What was said before, summed up:\nThey looked.',
      `user: ${masked}`,
    ])
    expect(JSON.stringify(set.model.requests)).not.toContain('4111 1111')
  })
})
