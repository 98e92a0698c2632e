import { createRuntime, defineAgent, type Ledger, type Run, type Runtime } from '@tallystick/core'
import { manualClock, scriptedModel, testTool, type ManualClock } from '@tallystick/testkit'
import { expect } from 'vitest'
import { eventsOf } from './removal-bed.ts'

interface Driven {
  readonly runtime: Runtime
  readonly run: Run
  readonly clock: ManualClock
  /** How often the tool was started. */
  readonly starts: () => number
}

/** A runtime that drives a run whose tool is under way until `paid` resolves. */
async function paying(ledger: Ledger, paid: Promise<string>): Promise<Driven> {
  let starts = 0
  const started = Promise.withResolvers<void>()
  const run = (): Promise<string> => {
    starts++
    started.resolve()
    return paid
  }
  const model = scriptedModel([{ toolCalls: [{ name: 'pay', input: {} }] }, { text: 'Paid.' }])
  const tools = [testTool({ name: 'pay', effect: 'write', run })]
  const agent = defineAgent({ name: 'clerk', instructions: 'Pay.', model, tools })
  const clock = manualClock()
  const runtime = createRuntime({ ledger, agents: [agent], host: { clock } })
  const handle = runtime.run(agent, 'Pay.')
  await started.promise
  return { runtime, run: handle, clock, starts: () => starts }
}

/** Continues a run in another process, and returns its result. */
async function continued(ledger: Ledger, runId: Run['id']): Promise<unknown> {
  const tools = [testTool({ name: 'pay', effect: 'write', run: () => 'paid again' })]
  const model = scriptedModel([{ text: 'Paid.' }])
  const agent = defineAgent({ name: 'clerk', instructions: 'Pay.', model, tools })
  return await createRuntime({ ledger, agents: [agent] }).resume(runId).result
}

async function outcomes(ledger: Ledger, runId: Run['id']): Promise<readonly string[]> {
  const events = await eventsOf(ledger, runId)
  return events.flatMap((event) => (event.type === 'tool_result' ? [event.outcome] : []))
}

/** What becomes of runs that are driven when their ledger is closed, each case by its claim. */
export const closingCases: Readonly<Record<string, (open: () => Ledger) => Promise<void>>> = {
  async 'a call that is under way ends, and its result is on record, before the ledger closes'(open) {
    const ledger = open()
    const paid = Promise.withResolvers<string>()
    const { run, runtime, starts } = await paying(ledger, paid.promise)
    let isClosed = false
    const closed = ledger.close().then(() => (isClosed = true))
    // The ledger works until then.
    expect(await ledger.head(run.id)).toBeDefined()
    expect(isClosed).toBe(false)
    expect(() => runtime.resume(run.id)).toThrow(/was drained/)
    paid.resolve('paid')
    expect(await run.result).toMatchObject({ status: 'interrupted' })
    await closed
    await expect(ledger.head(run.id)).rejects.toMatchObject({ code: 'ledger_unavailable' })

    const again = open()
    expect(await continued(again, run.id)).toMatchObject({ status: 'done', text: 'Paid.' })
    expect([await outcomes(again, run.id), starts()]).toEqual([['success'], 1])
    await again.close()
  },

  async 'a call that does not end is left in doubt after the grace time of a drain, and its run has a result'(
    open,
  ) {
    const ledger = open()
    const { run, clock } = await paying(ledger, new Promise(() => {}))
    const closed = ledger.close()
    clock.advance(4_999)
    await ledger.head(run.id)
    clock.advance(1)
    await closed
    expect(await run.result).toMatchObject({ status: 'interrupted' })
    const again = open()
    expect(await continued(again, run.id)).toMatchObject({ status: 'done' })
    expect(await outcomes(again, run.id)).toEqual(['interrupted'])
    await again.close()
  },

  async 'where no run is under way it closes at once'(open) {
    const ledger = open()
    const { run } = await paying(ledger, Promise.resolve('paid'))
    expect(await run.result).toMatchObject({ status: 'done' })
    const closed = ledger.close()
    await expect(ledger.head(run.id)).rejects.toMatchObject({ code: 'ledger_unavailable' })
    await closed
  },
}
