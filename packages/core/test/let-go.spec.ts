// What a run leaves when it has stopped: nothing in flight, nothing that listens, nothing that it did not record.
import { defer, finalize } from 'rxjs'
import { describe, expect, it } from 'vitest'
import { memoryLedger, type Ledger } from '@tallystick/core'
import { testTool } from '@tallystick/testkit'
import { stage } from './stage.ts'

/** A ledger that counts who listens to its hints, and how many of them to those about inboxes alone. */
function counted(ledger: Ledger) {
  let [listeners, ofInboxes] = [0, 0]
  const changes: Ledger['changes'] = (runId, part) =>
    defer(() => {
      const isOfInbox = part === 'inbox' ? 1 : 0
      listeners++
      ofInboxes += isOfInbox
      return ledger.changes(runId, part).pipe(
        finalize(() => {
          listeners--
          ofInboxes -= isOfInbox
        }),
      )
    })
  return { view: { ...ledger, changes }, listeners: () => listeners, ofInboxes: () => ofInboxes }
}

describe('a run that has stopped', () => {
  it('listens to its ledger no more, and has no timer', async () => {
    const { view, listeners } = counted(memoryLedger())
    const set = stage({ ledger: view, limits: { maxDurationMs: 60_000 } })
    const run = set.start()
    while (listeners() === 0) await Promise.resolve()
    await set.waitUntilSettled(run.result)
    expect([listeners(), set.clock.pending]).toEqual([0, 0])
  })

  it('listens for what other processes record as long as it waits and has readers, and before that only to its inbox', async () => {
    const { view, listeners, ofInboxes } = counted(memoryLedger())
    const pay = testTool({ name: 'pay', effect: 'write', check: () => ({ kind: 'ask' }) })
    const steps = [{ toolCalls: [{ name: 'pay', input: {} }] }, { text: 'Paid.' }]
    const set = stage({ ledger: view, steps, tools: [pay] })
    const run = set.start()
    const counts: (readonly number[])[] = []
    const readers = [
      run.events$.subscribe(() => counts.push([listeners(), ofInboxes()])),
      run.text$.subscribe(),
    ]
    const { pendingApprovals } = await set.waitUntilSettled(run.result)
    expect(new Set(counts.map(String))).toEqual(new Set(['1,1']))
    expect([listeners(), ofInboxes()]).toEqual([1, 0])
    readers[0]?.unsubscribe()
    expect(listeners()).toBe(1)
    readers[1]?.unsubscribe()
    expect(listeners()).toBe(0)
    run.events$.subscribe()
    expect(listeners()).toBe(1)
    await set.waitUntilSettled(run.approve(pendingApprovals[0]?.toolCallId ?? '', { by: 'ada' }))
    await set.waitUntilSettled(run.result)
    expect(listeners()).toBe(0)
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
    const resumed = await set.waitUntilSettled(set.runtime.resume(runId).result)
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
