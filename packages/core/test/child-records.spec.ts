import { describe, expect, it } from 'vitest'
import type { Ledger } from '@tallystick/core'
import { sampleRunId } from '@tallystick/testkit'
import { canContinue, readChildEnding, isDescendantOf, readChildTotals } from '../src/runtime/children.ts'
import { office } from './office.ts'
import { ofType, stage } from './stage.ts'

const text = 'A text that is long enough to be worth some tokens.'
const usage = { inputTokens: 100, outputTokens: 10 }

describe('what a run has used so far', () => {
  it('is nothing for a run that is not there', async () => {
    expect(await readChildTotals(stage().ledger, sampleRunId(9))).toBeUndefined()
  })

  it('is what its events say, once its model calls have ended', async () => {
    const set = stage({ steps: [{ text, usage }], limits: { maxTotalTokens: 100_000 } })
    const { runId } = await set.play()
    expect(await readChildTotals(set.ledger, runId)).toEqual({
      ...{ totals: { runId, usage, turns: 1, toolCalls: 0 }, isFinal: true },
    })
  })

  it('includes an estimate of a model call that is under way, and none of one that has failed', async () => {
    const limits = { maxTotalTokens: 100_000 }
    const hanging = stage({ steps: [{ text, hang: true }], limits })
    const run = hanging.start()
    await hanging.waitUntilSettled(
      new Promise<void>((resolve) => {
        let written = ''
        run.textUpdates$.subscribe((update) => (written += update.text) === text && resolve())
      }),
    )
    const events = await hanging.eventsOf(run)
    expect(events.some(({ type }) => type === 'usage_updated')).toBe(false)
    const sofar = await readChildTotals(hanging.ledger, run.id)
    expect(sofar).toMatchObject({ totals: { runId: run.id, turns: 1, toolCalls: 0 }, isFinal: false })
    expect(sofar?.totals.usage.outputTokens).toBeGreaterThan(5)
    expect(await hanging.eventsOf(run)).toEqual(events)

    for (const reply of [{}, { text, usage }]) {
      const failing = stage({ steps: [{ ...reply, fail: 'overloaded' }], limits })
      const failed = failing.start()
      await new Promise<void>((resolve) => {
        failed.events$.subscribe(({ type }) => type === 'model_stream_failed' && resolve())
      })
      const recorded = ofType(await failing.eventsOf(failed), 'usage_updated').at(-1)?.usage ?? {}
      expect((await readChildTotals(failing.ledger, failed.id))?.totals.usage).toEqual(recorded)
    }
  })
})

describe('the ending of a run', () => {
  it('is on record once it has ended, and only then', async () => {
    const set = office()
    const { rootId, runtime } = await set.begin()
    expect(await readChildEnding(set.ledger, rootId)).toBeUndefined()
    expect(await readChildEnding(set.ledger, sampleRunId(9))).toBeUndefined()
    const run = runtime.resume(rootId)
    await set.settled(run.cancel())
    await set.settled(run.result)
    expect(await readChildEnding(set.ledger, rootId)).toMatchObject({ kind: 'ended', outcome: 'cancelled' })
  })
})

it('continues no run whose child runs still wait for a person', async () => {
  const set = office()
  const { rootId } = await set.begin()
  for (const takeOver of [false, true])
    expect(await canContinue(set.ledger, rootId, { withChildren: takeOver, now: 0 })).toBe(false)
})

describe('the ending of a run that has none yet', () => {
  it('is looked for in its last event alone', async () => {
    const set = office()
    const { rootId } = await set.begin()
    const { seq } = (await set.ledger.head(rootId))!
    const read: unknown[] = []
    const watched: Ledger = {
      ...set.ledger,
      read(runId, range) {
        read.push([runId, range])
        return set.ledger.read(runId, range)
      },
    }
    expect(await readChildEnding(watched, rootId)).toBeUndefined()
    expect(read).toEqual([[rootId, { fromSeq: seq }]])
  })
})

describe('a run', () => {
  it('is a descendant of another at any depth: the first event of each run on the way says so', async () => {
    const set = office()
    const { rootId, managerId, questions } = await set.begin()
    const clerkId = questions[0]!.runId
    const read: [string, Parameters<Ledger['read']>[1]][] = []
    const watched: Ledger = {
      ...set.ledger,
      read(runId, range) {
        read.push([runId, range])
        return set.ledger.read(runId, range)
      },
    }
    expect(await isDescendantOf(watched, clerkId, rootId)).toBe(true)
    expect(read).toEqual([clerkId, managerId].map((runId) => [runId, { toSeq: 1 }]))
    expect(await isDescendantOf(set.ledger, managerId, rootId)).toBe(true)
    expect(await isDescendantOf(set.ledger, rootId, managerId)).toBe(false)
    expect(await isDescendantOf(set.ledger, clerkId, sampleRunId(9))).toBe(false)
  })

  it('that follows another in a session is not a child of it', async () => {
    const set = stage({ steps: [{ text }, { text }] })
    const runs = ['1', '2'].map((input) =>
      set.runtime.run(set.agent, input, { sessionId: 'chat', whenBusy: 'wait' }),
    )
    await set.waitUntilSettled(Promise.all(runs.map(({ result }) => result)))
    expect(await isDescendantOf(set.ledger, runs[1]!.id, runs[0]!.id)).toBe(false)
  })
})
