// What a run leaves when it has stopped: nothing in flight, nothing that listens, nothing that it did not record.
import { defer, finalize } from 'rxjs'
import { describe, expect, it } from 'vitest'
import { memoryLedger, type Ledger } from '@tallystick/core'
import { testTool } from '@tallystick/core/testing'
import { stage } from './stage.ts'

/** A ledger that counts who listens to its hints. */
function counted(ledger: Ledger): { readonly view: Ledger; readonly listeners: () => number } {
  let listeners = 0
  const changes: Ledger['changes'] = (runId) =>
    defer(() => {
      listeners++
      return ledger.changes(runId).pipe(finalize(() => listeners--))
    })
  return { view: { ...ledger, changes }, listeners: () => listeners }
}

describe('a run that has stopped', () => {
  it('listens to its ledger no more, and has no timer', async () => {
    const { view, listeners } = counted(memoryLedger())
    const set = stage({ ledger: view, limits: { maxDurationMs: 60_000 } })
    const run = set.start()
    while (listeners() === 0) await Promise.resolve()
    await set.untilSettled(run.result)
    expect([listeners(), set.clock.pending]).toEqual([0, 0])
  })

  it('has given up its model call where its ledger fails', async () => {
    const ledger = memoryLedger()
    const append: Ledger['append'] = async (...given) => {
      if (given[2].some(({ type }) => type === 'assistant_text_delta')) throw new Error('disk full')
      return await ledger.append(...given)
    }
    const set = stage({ ledger: { ...ledger, append }, steps: [{ text: 'Thinking', hang: true }] })
    await expect(set.play()).rejects.toThrow('disk full')
    expect([set.model.abandoned, set.clock.pending]).toEqual([1, 0])
  })

  it('ends at the last event on record, though it was taken over without a need to record it', async () => {
    const pay = testTool({ name: 'pay', effect: 'write', check: () => ({ kind: 'ask' }) })
    const set = stage({ steps: [{ toolCalls: [{ name: 'pay', input: {} }] }], tools: [pay] })
    const { runId, seq } = await set.play()
    const resumed = await set.untilSettled(set.runtime.resume(runId).result)
    expect([resumed.seq, (await set.eventsOf(runId)).length]).toEqual([seq, seq])
  })

  it('records what decides something before it continues, and a reply with its reads without waiting for the disk', async () => {
    const ledger = memoryLedger()
    const appends: { readonly types: readonly string[]; readonly durability: string }[] = []
    const append: Ledger['append'] = async (runId, expected, events, options) => {
      appends.push({ types: events.map(({ type }) => type), durability: options.durability })
      return await ledger.append(runId, expected, events, options)
    }
    const look = testTool({ name: 'look' })
    const steps = [{ text: 'Looking.', toolCalls: [{ name: 'look', input: {} }] }, { text: 'It is blue.' }]
    await stage({ ledger: { ...ledger, append }, steps, tools: [look] }).play()
    const isPiece = (type: string): boolean =>
      /_delta$|^(assistant_started|tool_request_ready|assistant_message_finished)$/.test(type) ||
      /^tool_(requests_collected|started|result)$/.test(type)
    for (const { types, durability } of appends) {
      expect([types, durability]).toEqual([types, types.every(isPiece) ? 'lazy' : 'barrier'])
    }
    expect(new Set(appends.map(({ durability }) => durability)).size).toBe(2)
    expect(appends.some(({ types }) => types.some(isPiece) && !types.every(isPiece))).toBe(true)
  })
})
