import {
  memoryLedger,
  type Ledger,
  createRuntime,
  LedgerConflictError,
  LedgerUnavailableError,
} from '@tallystick/core'
import { testTool, manualClock } from '@tallystick/testkit'
import { defer, finalize, NEVER } from 'rxjs'
import { describe, expect, it } from 'vitest'
import { stage, ofType, typesOf, type Stage } from './stage.ts'

// What a run leaves when it has stopped: nothing in flight, nothing that listens, nothing that it did not record.

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

/** A run whose tool works for half a minute, in steps of `stepMs`, and appends nothing meanwhile. */
function working(stepMs: number, renew?: Ledger['renew']): Stage & { readonly steps: () => number } {
  const clock = manualClock()
  let steps = 0
  const pass = (): Promise<void> => new Promise((resolve) => void clock.schedule(stepMs, resolve))
  const work = testTool({
    name: 'work',
    run: async () => {
      for (; steps * stepMs < 30_000; steps++) await pass()
      return 'Worked.'
    },
  })
  const ledger = memoryLedger({ clock })
  const set = stage({
    steps: [{ toolCalls: [{ name: 'work', input: {} }] }, { text: 'Done.' }],
    tools: [work],
    ledger: renew ? { ...ledger, renew } : ledger,
    clock,
  })
  return { ...set, steps: () => steps }
}

describe('the lease of a run whose tool is silent', () => {
  it('given a ledger that answers no renewal, when the lease has ended, then the run is given up, and appends nothing more', async () => {
    const set = working(1_000, () => new Promise(() => {}))
    const run = set.start()
    const began = set.clock.now()
    await expect(set.waitUntilSettled(run.result)).rejects.toThrow(LedgerUnavailableError)
    expect(set.clock.now() - began).toBeGreaterThanOrEqual(12_000)
    expect(set.clock.now() - began).toBeLessThanOrEqual(15_000)
    expect(set.steps()).toBeLessThan(30)
    expect(typesOf(await set.eventsOf(run)).at(-1)).toBe('tool_started')
  })

  it('given a ledger that answers, when the tool works for longer than a lease lasts, then the run goes on', async () => {
    const set = working(1_000)
    expect(await set.play()).toMatchObject({ reason: 'answered', text: 'Done.' })
  })

  it('given a process that stood still for longer than a lease lasts, when the ledger then answers, then the run goes on', async () => {
    const set = working(15_000)
    const { runId } = await set.play()
    expect(ofType(await set.eventsOf(runId), 'run_finished')).toMatchObject([{ reason: 'answered' }])
  })
})

describe('a process that stood still as the start of a call was recorded', () => {
  it('given another one that has driven the run since, then it does not begin the call', async () => {
    const pay = testTool({ name: 'pay', effect: 'write', recovery: 'rerun' })
    const set = stage({
      steps: [{ toolCalls: [{ name: 'pay', input: {} }] }, { text: 'Paid.' }],
      tools: [pay],
    })
    const [stopped, thawed] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    let stoodStillMs = 0
    const ledger: Ledger = {
      ...set.ledger,
      // What it would hear of the other one comes later than the answer of its append.
      changes: () => NEVER,
      async append(runId, expected, events, options) {
        const head = await set.ledger.append(runId, expected, events, options)
        if (events.some(({ type }) => type === 'tool_started')) {
          stopped.resolve()
          await thawed.promise
        }
        return head
      },
    }
    const clock = { ...set.clock, even: () => set.clock.now() + stoodStillMs }
    const run = createRuntime({ ledger, agents: [set.agent], host: { clock, report: () => {} } }).run(
      set.agent,
      'Pay.',
    )
    await stopped.promise
    await set.waitUntilSettled(set.runtime.resume(run.id, { takeOver: true }).result)
    expect(pay.runs).toHaveLength(1)
    stoodStillMs = 25_000
    thawed.resolve()
    await expect(set.waitUntilSettled(run.result)).rejects.toThrow(LedgerConflictError)
    expect(pay.runs).toHaveLength(1)
  })
})
