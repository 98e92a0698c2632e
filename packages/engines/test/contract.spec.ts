import { describe, expect, it } from 'vitest'
import { contractOf, type EngineHarness } from '@tallystick/engines/contract'
import { capabilities, openQueue, queueEngine } from './queue-engine.ts'

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
