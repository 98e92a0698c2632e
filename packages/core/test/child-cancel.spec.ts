import { describe, expect, it } from 'vitest'
import type { Ledger, Run } from '@tallystick/core'
import { dyingAt, listening, office } from './office.ts'
import { ofType, recorded } from './stage.ts'

describe('a run that is cancelled', () => {
  it('cancels the child runs that it waits for, each once, and needs no other report of their ends', async () => {
    const set = office()
    const { ledger: view, put } = listening(set.ledger)
    const { runtime, rootId } = await set.begin({ view })
    const run = runtime.resume(rootId)
    expect(await set.settled(run.cancel('enough'))).toEqual({ accepted: true })
    expect(await set.settled(run.result)).toMatchObject({ reason: 'cancelled' })
    await set.settled(runtime.idle())
    for await (const { runId } of set.ledger.runs()) {
      expect(await set.lastOf(runId)).toMatchObject({ type: 'run_finished', reason: 'cancelled' })
    }
    expect(put.map(({ command }) => command.type)).toEqual(['cancel', 'cancel', 'cancel'])
    expect(set.clock.pending).toBe(0)
  })

  it('cancels each of them once, though it has other work that ends meanwhile', async () => {
    const set = office({ isLooking: true })
    const { ledger: view, put } = listening(set.ledger)
    const { runtime, rootId } = await set.begin({ view, looks: () => new Promise(() => {}) })
    const run = runtime.resume(rootId)
    await set.settled(run.cancel('enough'))
    expect(await set.settled(run.result)).toMatchObject({ reason: 'cancelled' })
    const results = ofType(await recorded(set.ledger, rootId), 'tool_result')
    expect(results.map(({ outcome }) => outcome)).toEqual(['cancelled', 'cancelled'])
    expect(put.map(({ command }) => command.type)).toEqual(['cancel', 'cancel', 'cancel'])
    expect(set.clock.pending).toBe(0)
  })

  it.each(['asks for it', 'records its first event'])(
    'waits while its ledger %s for a child run, and cancels that',
    async (what) => {
      const set = office()
      const gate = Promise.withResolvers<void>()
      const view: Ledger = {
        ...set.ledger,
        async head(runId) {
          if (what === 'asks for it' && runId !== run.id) await gate.promise
          return await set.ledger.head(runId)
        },
        async append(runId, expected, events, options) {
          if (runId !== run.id && events[0]?.type === 'run_started') await gate.promise
          return await set.ledger.append(runId, expected, events, options)
        },
      }
      const { runtime, boss } = set.open({ view })
      const run: Run = runtime.run(boss, 'Go.')
      const has = async (type: string) =>
        (await recorded(set.ledger, run.id)).some((event) => event.type === type)
      await set.until(() => has('tool_started'))
      const cancelled = run.cancel('enough')
      await set.until(() => has('cancel_requested'))
      for (let turn = 0; turn < 500; turn++) await Promise.resolve()
      gate.resolve()
      await set.settled(cancelled)
      expect(await set.settled(run.result)).toMatchObject({ reason: 'cancelled', children: { runs: 1 } })
      await set.settled(runtime.idle())
      const [{ child = '' } = {}] = ofType(await recorded(set.ledger, run.id), 'tool_started')
      expect(await set.lastOf(child)).toMatchObject({ type: 'run_finished', reason: 'cancelled' })
    },
  )

  it('begins no child run that had not begun when its process died', async () => {
    const set = office()
    const view = dyingAt(set.ledger, ({ type }, isOfFirst) => !isOfFirst && type === 'run_started')
    const { runtime, boss } = set.open({ view })
    const { id } = runtime.run(boss, 'Go.')
    await set.settled(runtime.idle())
    await set.ledger.put(id, { key: 'c', at: 0, command: { type: 'cancel', reason: 'enough' } })
    const resumed = set.open().runtime.resume(id)
    expect(await set.settled(resumed.result)).toMatchObject({ reason: 'cancelled', children: { runs: 0 } })
    const results = ofType(await recorded(set.ledger, id), 'tool_result')
    expect(results).toMatchObject([
      {
        outcome: 'cancelled',
        content: [{ text: expect.stringContaining('before this call was complete') as string }],
      },
    ])
    expect(await Array.fromAsync(set.ledger.runs())).toHaveLength(1)
  })
})
