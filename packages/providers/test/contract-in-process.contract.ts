import type { Model } from '@tallystick/core'
import { scriptedModel } from '@tallystick/testkit'
import { describe, expect, it } from 'vitest'
import {
  contractOf,
  modelContract,
  type ContractReply,
  type ModelHarness,
} from '@tallystick/testkit/contract'

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
  const cases = contractOf.model(harness)

  it.each([...cases])('$promise', async ({ run }) => {
    await expect(run()).resolves.toBeUndefined()
  })

  it('is held to all but what needs a connection, or rules for names', () => {
    const held = new Set(cases.map(({ promise }) => promise))
    const left = modelContract.filter(({ promise }) => !held.has(promise)).map(({ needs }) => needs)
    expect(left).toEqual([...Array.from({ length: 12 }, () => 'connection'), 'names'])
    expect(cases.length).toBeGreaterThanOrEqual(14)
  })
})
