// What the digest of a model call covers. It is part of the stored format: another form of it would refuse recorded runs.
import { createRuntime, defineAgent, memoryLedger } from '@tallystick/core'
import { computeHistoryDigests } from '@tallystick/core/internal'
import { computeDigest, type JsonObject } from '@tallystick/core/vocabulary'
import { manualClock, scriptedModel, waitUntilSettled } from '@tallystick/testkit'
import { describe, expect, it } from 'vitest'
import { checkedRun, ofType, recorded } from './stage.ts'

describe('the digest of a request', () => {
  it.each([{ previousResponseId: 'resp_1' }, { conversationId: 'conv_1' }])(
    'names where the provider keeps the past, %o, beside all else that is sent',
    async (providerState) => {
      const model = Object.assign(scriptedModel([{ text: 'Done.' }]), { keepsState: true as const })
      const agent = defineAgent({ name: 'guide', instructions: 'Help.', model })
      const ledger = memoryLedger()
      const clock = manualClock()
      const run = createRuntime({ ledger, host: { clock } }).run(agent, 'Go.', {
        ...providerState,
        modelSettings: { seed: 7 },
      })
      await waitUntilSettled(clock, run.result)
      const [call] = ofType(checkedRun(await recorded(ledger, run.id)), 'model_call_started')
      const covered: JsonObject = {
        model: { provider: model.provider, modelId: model.modelId, api: model.api },
        definition: agent.definition.digest,
        toolChoice: { type: 'auto' },
        history: computeHistoryDigests(model.requests[0]!.messages)[0]!,
        modelSettings: { seed: 7 },
        providerState,
      }
      expect(call?.requestDigest).toBe(computeDigest(covered))
    },
  )
})
