import { describe, expect, it } from 'vitest'
import type { Wake } from '@tallystick/engines'
import { contractOf, type EngineHarness } from '@tallystick/engines/contract'
import { capabilities, openQueue, queueEngine } from './queue-engine.ts'
import { sqliteSite } from './support/run-sites.ts'

type Fault = NonNullable<Parameters<typeof queueEngine>[1]>['forgets']

const harness = (forgets?: Fault, limitMs = 60_000): EngineHarness => ({
  limitMs,
  capabilities,
  timerMs: 200,
  open() {
    const queue = openQueue()
    const open = () => queueEngine(queue, { ...(forgets && { forgets }) })
    return Promise.resolve({
      engine: open(),
      another: () => Promise.resolve(open()),
      close: () => Promise.resolve(),
    })
  },
})

describe('an engine in memory keeps', () => {
  it.for(contractOf.engine(harness()))('$promise', async ({ lacks, run }, { skip }) => {
    if (lacks !== undefined) skip(`the engine is not capable of ${lacks}`)
    await expect(run()).resolves.toBeUndefined()
  })
})

describe('an engine breaks the contract', () => {
  it.for(['merging', 'earlier', 'whileDriven', 'failures', 'exclusion'] as const)(
    'that forgets %s',
    async (forgets) => {
      const verdicts = await Promise.allSettled(
        contractOf.engine(harness(forgets, 2_000)).map(({ run }) => run()),
      )
      expect(verdicts.filter(({ status }) => status === 'rejected').length).toBeGreaterThan(0)
    },
  )
})

describe('the contract about runs is broken', () => {
  it('by an engine that forgets times to come, which the message says', async () => {
    const queue = openQueue()
    const engine = queueEngine(queue)
    const forgetful = {
      ...engine,
      wake: (given: Wake) => (given.at === undefined ? engine.wake(given) : Promise.resolve()),
    }
    const open = () => sqliteSite(() => ({ engine: forgetful }))
    const timed = contractOf.runs({ open, timerMs: 100, limitMs: 3_000 })[4]
    expect(timed?.promise).toMatch(/deadline/)
    await expect(timed?.run()).rejects.toThrow(/nothing has come of it within 3000 ms. Calls begun: 1/)
  })
})
