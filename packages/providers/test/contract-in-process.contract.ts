import type { Model } from '@tallystick/core'
import { scriptedModel } from '@tallystick/core/testing'
import { describe, expect, it } from 'vitest'
import { modelContract, type ContractReply, type ModelHarness } from '../src/contract.ts'

/** A model without a wire, such as one that runs in the same process, needs no more of a harness than this. */
const harness: ModelHarness = {
  lacks: ['connection', 'names'],
  measure: () => ({ events: 1, proof: 1 }),
  stage(scenes) {
    const replies = scenes.map((scene) => (scene.type === 'reply' ? scene.reply : undefined))
    const steps = Array.from({ length: 20 }, (_, place) =>
      stepOf(replies[Math.min(place, replies.length - 1)]),
    )
    const scripted = scriptedModel(steps)
    const { provider, api, modelId } = scripted
    const model: Model = {
      provider,
      api,
      modelId,
      stream: (request, context) => scripted.stream(request, context),
    }
    return Promise.resolve({
      model,
      bodies: scripted.requests,
      begun: () => Promise.resolve(),
      closed: () => Promise.resolve(),
      close: () => Promise.resolve(),
    })
  },
}

function stepOf(reply: ContractReply | ((names: readonly string[]) => ContractReply) | undefined) {
  if (reply === undefined || typeof reply === 'function') throw new Error('The scene needs a wire.')
  const { reasoning, text, calls = [], stop, usage } = reply
  return {
    ...(reasoning && { reasoning: reasoning.join('') }),
    ...(text && { text: text.join('') }),
    toolCalls: calls,
    ...{ usage, stopReason: stop },
  }
}

describe('a model in the same process', () => {
  for (const { promise, needs, run } of modelContract) {
    const lacking = needs && harness.lacks?.includes(needs) ? ` (this model has no ${needs})` : ''
    // The title says what the model lacks.
    it.skipIf(lacking)(`${promise}${lacking}`, async () => {
      await run(harness)
      expect(promise).not.toBe('')
    })
  }

  it('is held to the better half of the contract', () => {
    const held = modelContract.filter(({ needs }) => !needs || !harness.lacks?.includes(needs))
    expect(held.length).toBeGreaterThanOrEqual(14)
  })
})
