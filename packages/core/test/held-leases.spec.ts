import { describe, expect, it } from 'vitest'
import {
  createRuntime,
  LedgerConflictError,
  LedgerUnavailableError,
  memoryLedger,
  type Ledger,
} from '@tallystick/core'
import { NEVER } from 'rxjs'
import { manualClock, testTool } from '@tallystick/testkit'
import { ofType, stage, typesOf, type Stage } from './stage.ts'

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
