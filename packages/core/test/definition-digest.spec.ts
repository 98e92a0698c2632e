import type { RuntimeEvent } from '@tallystick/core'
import { removedText } from '@tallystick/core/internal'
import { computeDigest, type AgentDefinition } from '@tallystick/core/vocabulary'
import { seededRandom, testTool } from '@tallystick/testkit'
import { describe, expect, it } from 'vitest'
import { withDigest, withInstructions } from '../src/events/agent-definition.ts'
import { redactDefinition } from '../src/ledger/redacted-event.ts'
import { ofType, stage } from './stage.ts'

const model = (modelId: string) => ({ provider: 'acme', api: 'wire', modelId })
const price = { inputUsd: 1, outputUsd: 2 }
const said = { model: model('large'), instructions: 'Help.', tools: [], parallelToolCalls: true }
const whole: Omit<AgentDefinition, 'digest'> = {
  ...said,
  price,
  fallbacks: [{ model: model('small'), price, maxWebSearches: 1 }],
  summarizer: { model: model('tiny'), price, instructions: 'Sum up.' },
}

describe('the digest of a definition', () => {
  it('is that of what it says, whatever its models cost', () => {
    const { digest, ...rest } = withDigest(whole)
    expect(rest).toEqual(whole)
    expect(digest).toBe(
      computeDigest({
        ...said,
        fallbacks: [{ model: model('small'), maxWebSearches: 1 }],
        summarizer: { model: model('tiny'), instructions: 'Sum up.' },
      }),
    )
    expect(withDigest(said).digest).toBe(computeDigest(said))
  })

  it('is another one where another model takes over or sums up', () => {
    const { digest } = withDigest(whole)
    const others = [
      { ...whole, fallbacks: [{ model: model('other'), price }] },
      { ...whole, summarizer: { model: model('other'), price, instructions: 'Sum up.' } },
      said,
    ]
    expect(new Set([digest, ...others.map((other) => withDigest(other).digest)]).size).toBe(4)
  })

  it('is that of the new instructions, and of a definition that has the old ones already the same', () => {
    const before = withDigest(whole)
    expect(withInstructions(before, 'Help.')).toBe(before)
    const after = withInstructions(before, 'Be short.')
    expect(after).toEqual(withDigest({ ...whole, instructions: 'Be short.' }))
    expect(after.digest).not.toBe(before.digest)
    expect(withInstructions(after, 'Help.')).toEqual(before)
  })
})

it('the definition of an agent is copied and frozen once, and not for each run that records it', async () => {
  const { play, agent, eventsOf } = stage({
    tools: [testTool({ name: 'look' })],
    steps: [{ text: 'One.' }, { text: 'Two.' }],
    random: seededRandom(1),
  })
  const definitionOf = (events: readonly RuntimeEvent[]) => ofType(events, 'run_started')[0]?.definition
  const [one, two] = [await play(), await play()]
  const recorded = definitionOf(await eventsOf(one.runId))
  expect(definitionOf(await eventsOf(two.runId))).toBe(recorded)
  expect(recorded).toEqual(agent.definition)
  expect([recorded, recorded?.tools, recorded?.tools[0]?.inputSchema].every(Object.isFrozen)).toBe(true)
})

describe('a definition after redaction', () => {
  const facts = {
    model: { provider: 'p', api: 'a', modelId: 'm' },
    parallelToolCalls: true,
    digest: 'd',
  }
  const kept = {
    maxOutputTokens: 0,
    onRefusal: 'fallback',
    price: { input: 1 },
    fallbacks: [{ model: facts.model }],
    guardrails: [{ name: 'guard' }],
    handoffs: ['clerk'],
  }
  const bare = { ...facts, instructions: 'said', tools: [] } as unknown as AgentDefinition
  const whole = {
    ...bare,
    ...kept,
    tools: [{ name: 'look', description: 'said', inputSchema: { type: 'object', title: 'said' } }],
    modelSettings: { temperature: 0.5, stopSequences: ['said'] },
    output: { maxRetries: 2, schema: { title: 'said' } },
    summarizer: { model: facts.model, instructions: 'said', maxOutputTokens: 9 },
  } as unknown as AgentDefinition

  it('a redacted definition keeps its facts, and no field that it did not have', () => {
    const left = redactDefinition(whole)
    expect(left).toMatchObject({ ...facts, ...kept, modelSettings: { temperature: 0.5 } })
    expect(Object.keys(left).toSorted()).toEqual(Object.keys(whole).toSorted())
    expect(left).toMatchObject({
      // Vendors take no other schema than that of an object for the input of a tool.
      tools: [{ name: 'look', description: removedText, inputSchema: { type: 'object' } }],
      output: { maxRetries: 2, schema: {} },
      summarizer: { model: facts.model, maxOutputTokens: 9 },
    })
    expect(JSON.stringify(left)).not.toContain('said')
    expect(Object.keys(redactDefinition(bare)).toSorted()).toEqual(Object.keys(bare).toSorted())
  })
})
