import { ConfigurationError, memoryLedger, type Ledger } from '@tallystick/core'
import { describe, expect, it } from 'vitest'
import { requireSameRun } from '../src/runtime/start-run.ts'
import { stage } from './stage.ts'

const said = (text: string) =>
  ({ agent: 'agent', sessionId: 'chat', message: { role: 'user', parts: [{ type: 'text', text }] } }) as const

describe('a run that an idempotency key has begun before', () => {
  it('is compared by how it began, however long it is, and where its session has an edited past', async () => {
    const kept = memoryLedger()
    const set = stage({ ledger: kept, steps: [{ text: 'One.' }, { text: 'Two.' }] })
    const session = set.runtime.session('chat')
    await set.waitUntilSettled((await session.run(set.agent, 'First.')).result)
    const run = await session.run(set.agent, 'Second.')
    await set.waitUntilSettled(run.result)
    const read: number[] = []
    const ledger: Ledger = {
      ...kept,
      async *read(...asked) {
        for await (const event of kept.read(...asked)) {
          read.push(event.seq)
          yield event
        }
      },
    }
    await requireSameRun(ledger, run.id, said('Second.'))
    // What this run begins with: run_started, history_carried, input_received.
    expect(read).toEqual([1, 2, 3])
    await expect(requireSameRun(ledger, run.id, said('Another.'))).rejects.toThrow(ConfigurationError)
    const other = { ...said('Second.'), agent: 'other' }
    await expect(requireSameRun(ledger, run.id, other)).rejects.toThrow(/with another agent/)
  })
})
