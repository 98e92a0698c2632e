import { expect, it } from 'vitest'
import { memoryLedger, type RuntimeEvent } from '@tallystick/core'
import { sampleRunId } from '@tallystick/testkit'

it('the inbox of a run in memory is read as fast after many commands as before', async () => {
  const ledger = memoryLedger()
  const runId = sampleRunId(1)
  const append = (seq: number, type: string, consumedInboxKeys: readonly string[] = []) => {
    const event = { runId, seq, epoch: 1, turn: 0, at: 1, v: 1, type } as RuntimeEvent
    const head = { expectedSeq: seq - 1, epoch: 1 }
    return ledger.append(runId, head, [event], { durability: 'lazy', consumedInboxKeys })
  }
  const put = (key: string) => ledger.put(runId, { key, command: { type: 'cancel' }, at: 1 })
  await append(1, 'run_started')
  const taken = Array.from({ length: 20_000 }, (_, index) => `taken ${index}`)
  for (const key of taken) await put(key)
  await append(2, 'assistant_started', taken)
  await put('waits')
  const begun = performance.now()
  for (let times = 0; times < 2_000; times++) await ledger.inbox(runId)
  // A look at each command that was taken would take some seconds.
  expect(performance.now() - begun).toBeLessThan(1_000)
  expect((await ledger.inbox(runId)).map(({ key }) => key)).toEqual(['waits'])
  expect(await put('taken 0')).toBe(false)
})
