import { describe, expect, it } from 'vitest'
import { defineAgent, type Ledger, memoryLedger, type RuntimeEvent } from '@tallystick/core'
import { caughtUp, followChanges } from '@tallystick/core/store-kit'
import { sampleRunId, scriptedModel, testTool } from '@tallystick/testkit'
import { Subject } from 'rxjs'
import { SharedReads } from '../src/stream/shared-reads.ts'
import { framesOf, openOffice } from './kit/office.ts'

/** A ledger that counts the reads of its runs. */
function countingLedger(): { readonly ledger: Ledger; readonly reads: () => number } {
  const ledger = memoryLedger()
  let reads = 0
  const read: Ledger['read'] = (...range) => {
    reads++
    return ledger.read(...range)
  }
  return { ledger: { ...ledger, read }, reads: () => reads }
}

async function* noEvents(): AsyncGenerator<RuntimeEvent> {
  yield* []
}

describe('the readers of one run', () => {
  it('share their looks at the ledger, and each gets every event once', async () => {
    const steps = Promise.withResolvers<void>()
    let calls = 0
    const step = testTool({ name: 'step', run: () => `${++calls}` })
    const model = scriptedModel([
      { text: 'I wait.', toolCalls: [{ name: 'step', input: {} }], until: steps.promise },
      ...Array.from({ length: 20 }, () => ({ toolCalls: [{ name: 'step', input: {} }] })),
      { text: 'Done.' },
    ])
    const agent = defineAgent({ name: 'walker', instructions: 'Walk.', model, tools: [step] })
    const { ledger, reads } = countingLedger()
    const office = await openOffice({ ledger, agents: [agent] })
    const runId = await office.start('boss')
    const readers = 30
    const responses = await Promise.all(
      Array.from({ length: readers }, () =>
        office.send(`/runs/${runId}/events`, 'boss', undefined, { accept: 'text/event-stream' }),
      ),
    )
    let opened = 0
    const following = responses.map(async (response) => {
      const ids: number[] = []
      for await (const { id } of framesOf(response)) {
        if (ids.push(Number(id)) === 1 && ++opened === readers) steps.resolve()
      }
      return ids
    })
    const before = reads()
    const all = await Promise.all(following)
    const [first = []] = all
    expect(first).toEqual(first.map((_, index) => index + 1))
    expect(first.length).toBeGreaterThan(100)
    for (const ids of all) expect(ids).toEqual(first)
    expect(reads() - before).toBeLessThan(readers)
  })

  it('all get the error of a failed look, and the next look is a new one', async () => {
    const [hints, runId] = [new Subject<void>(), sampleRunId(1)]
    let isBroken = false
    let looks = 0
    const reads = new SharedReads({
      changes: () => hints,
      read: () => {
        looks++
        if (isBroken) throw new Error('no disk')
        return noEvents()
      },
    })
    const open = async () => {
      const changes = followChanges(reads.forReader(), runId, { after: 0 })
      expect((await changes.next()).value).toBe(caughtUp)
      return changes
    }
    const [one, other] = [await open(), await open()]
    expect(looks).toBe(2)
    isBroken = true
    const both = Promise.allSettled([one.next(), other.next()])
    hints.next()
    expect(await both).toMatchObject([{ status: 'rejected' }, { status: 'rejected' }])
    expect(looks).toBe(3)
    isBroken = false
    const again = await open()
    expect(looks).toBe(4)
    const next = again.next()
    hints.next()
    expect((await next).value).toBe(caughtUp)
    expect(looks).toBe(5)
    await again.return()
    expect(hints.observed).toBe(false)
  })
})
