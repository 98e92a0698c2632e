import { describe, expect, it } from 'vitest'
import { computeDigest, type AgentDefinition } from '@tallystick/core/vocabulary'
import { withDigest, withInstructions } from '../src/events/agent-definition.ts'

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
