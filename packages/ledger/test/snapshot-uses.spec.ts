import {
  createRuntime,
  defineAgent,
  memoryLedger,
  type Ledger,
  type RunId,
  type RuntimeEvent,
} from '@tallystick/core'
import { manualClock, scriptedModel, seededRandom } from '@tallystick/testkit'
import { foldTo } from '@tallystick/ledger'
import { sqliteLedger } from '@tallystick/ledger/sqlite'
import { describe, expect, it, onTestFinished } from 'vitest'
import { countEventsToFold } from '../src/projection/fold-to.ts'
import { tamper } from './support/raw-database.ts'
import { emptyLedgerFile } from './support/temporary-folder.ts'

/** A ledger with a run whose one answer is of 600 deltas, of which a row holds up to 256. */
async function answered(): Promise<{
  readonly path: string
  readonly ledger: Ledger
  readonly runId: RunId
}> {
  const path = emptyLedgerFile()
  const ledger = sqliteLedger(path)
  onTestFinished(() => ledger.close())
  const words = Array.from({ length: 600 }, (_, index) => `word${index} `)
  const model = scriptedModel([{ text: words.join('') }])
  const agent = defineAgent({ name: 'teller', instructions: '', model, tools: [] })
  const host = { clock: manualClock(), random: seededRandom(1) }
  const live = memoryLedger()
  const { id: runId, result } = createRuntime({ ledger: live, agents: [agent], host }).run(agent, 'Tell.')
  await result
  const recorded = await Array.fromAsync(live.read(runId))
  const first = recorded.find(({ type }) => type === 'assistant_text_delta')
  // The same run, as a wire with more and smaller pieces would have brought it.
  const events = recorded
    .flatMap((event): readonly RuntimeEvent[] => {
      if (event.type !== 'assistant_text_delta') return [event]
      return event === first ? words.map((text) => ({ ...event, text })) : []
    })
    .map((event, index) => ({ ...event, seq: index + 1 }))
  await ledger.append(runId, { expectedSeq: 0, epoch: 1 }, events, { durability: 'lazy' })
  return { path, ledger, runId }
}

describe('how many events a fold reads', () => {
  it('given snapshots, when they are counted, then from the nearest one before the event on', async () => {
    const { path, ledger, runId } = await answered()
    expect(await countEventsToFold(ledger, runId, 300)).toBe(300)
    await foldTo(ledger, runId, 250)
    expect(await countEventsToFold(ledger, runId, 300)).toBe(50)
    expect(await countEventsToFold(ledger, runId, 250)).toBe(0)
    expect(await countEventsToFold(ledger, runId, 249)).toBe(249)
    tamper(path, (database) => database.exec('drop table snapshot'))
    expect(await countEventsToFold(ledger, runId, 300)).toBe(300)
    expect(await countEventsToFold(memoryLedger(), runId, 300)).toBeUndefined()
  })
})
