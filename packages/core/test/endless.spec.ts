import { describe, expect, it } from 'vitest'
import { defineAgent, memoryLedger } from '@tallystick/core'
import { manualClock, scriptedModel, waitUntilSettled, simulate, testTool } from '@tallystick/testkit'

describe('what goes round and round under a manual clock is an error, not a hang', () => {
  it('code that looks at the clock again and again, and never waits for it', async () => {
    const clock = manualClock()
    const looks = async (): Promise<never> => {
      for (;;) {
        clock.now()
        await Promise.resolve()
        if (clock.uses > 10_000_000) throw new Error('It was not stopped.')
      }
    }
    await expect(waitUntilSettled(clock, looks())).rejects.toThrow('without waiting for it')
  })

  it('a person whose answers are refused, whatever they are', async () => {
    const pay = testTool({
      ...{ name: 'pay', effect: 'write' },
      check: ({ usd }) =>
        usd === 5 ? { kind: 'ask' } : { kind: 'refuse', outcome: 'invalid_input', text: 'usd: 5 or nothing' },
    })
    const agent = defineAgent({
      ...{ name: 'agent', instructions: 'Pay.', tools: [pay] },
      model: scriptedModel([{ toolCalls: [{ name: 'pay', input: { usd: 5 } }] }]),
    })
    const simulated = simulate({
      ...{ ledger: memoryLedger(), clock: manualClock(), random: () => 0, input: 'Go.' },
      ...{ agentOf: () => agent, decide: () => ({ approve: true, input: { usd: 6 } }) },
    })
    await expect(simulated).rejects.toThrow('they lead nowhere')
  })
})

describe('what takes many turns of the promise queue, and does not look at the clock', () => {
  it('is waited for, as long as it continues', async () => {
    const reads = async (): Promise<string> => {
      for (let turn = 0; turn < 100_000; turn++) await Promise.resolve()
      return 'read'
    }
    expect(await waitUntilSettled(manualClock(), reads())).toBe('read')
  })

  it('is an error where nothing continues', async () => {
    const stuck = waitUntilSettled(manualClock(), new Promise(() => {}))
    await expect(stuck).rejects.toThrow(/No work is left.*return what is under way there from `outside`/)
  })
})
