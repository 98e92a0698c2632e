// A child run whose store answers only after its parent was cancelled, waited out its grace time, and ended.
import {
  agentTool,
  createRuntime,
  defineAgent,
  memoryLedger,
  type Ledger,
  type RunId,
} from '@tallystick/core'
import {
  checkBudgets,
  manualClock,
  scriptedModel,
  testTool,
  untilSettled,
  watchedLedger,
} from '@tallystick/core/testing'
import { verifyRun } from '@tallystick/ledger'
import { sqliteLedger } from '@tallystick/ledger/sqlite'
import { describe, expect, it } from 'vitest'
import { emptyLedgerFile } from './support/temporary-folder.ts'

const usage = { inputTokens: 100, outputTokens: 20 }
const stores: Readonly<Record<string, () => Ledger>> = {
  memory: () => memoryLedger(),
  SQLite: () => sqliteLedger(emptyLedgerFile()),
}

/** Plays a family of two of which the child's appends wait, from one of them on, until the parent has ended. */
async function family(store: Ledger, heldFrom: number, limits: { readonly maxTotalTokens?: number }) {
  const clock = manualClock()
  const { ledger: watched, outside } = watchedLedger(store)
  const gate = Promise.withResolvers<void>()
  const isHeld = Promise.withResolvers<void>()
  let appends = 0
  const ledger: Ledger = {
    ...watched,
    async append(runId, ...given) {
      if (runId !== run.id && ++appends >= heldFrom) {
        isHeld.resolve()
        await gate.promise
      }
      return await watched.append(runId, ...given)
    },
  }
  const worker = defineAgent({
    ...{ name: 'worker', description: 'Works.', instructions: 'Work.', tools: [testTool({ name: 'look' })] },
    model: scriptedModel([
      { toolCalls: [{ name: 'look', input: {} }], usage },
      { text: 'Worked.', usage },
    ]),
  })
  const boss = defineAgent({
    ...{ name: 'boss', instructions: 'Lead.', tools: [agentTool(worker)], limits },
    model: scriptedModel([{ toolCalls: [{ name: 'worker', input: { task: 'Work.' } }], usage }]),
  })
  const runtime = createRuntime({ ledger, agents: [boss], host: { clock, report: () => {} } })
  const run = runtime.run(boss, 'Go.')
  const ended = run.result
  await isHeld.promise
  void run.cancel('Enough.')
  const settled = <T>(promise: Promise<T>): Promise<T> => untilSettled(clock, promise, outside)
  expect(await settled(ended)).toMatchObject({ reason: 'cancelled' })
  gate.resolve()
  await settled(runtime.idle())
  const parent = await Array.fromAsync(store.read(run.id))
  const child = parent.flatMap((event) => (event.type === 'tool_started' && event.child) || [])[0] as RunId
  return { parent, child: await Array.fromAsync(store.read(child)) }
}

describe.each(Object.entries(stores))('a child run that its parent had to leave, in %s', (_name, open) => {
  it.each([{}, { maxTotalTokens: 100_000 }])(
    'is counted for no less than it uses, from whichever append on it was late, with limits %j',
    async (limits) => {
      let late = 0
      for (const heldFrom of [1, 2, 3]) {
        const store = open()
        const { parent, child } = await family(store, heldFrom, limits)
        for (const [first] of [parent, child]) {
          expect(await verifyRun(store, first!.runId)).toMatchObject({ ok: true, events: expect.any(Number) })
        }
        expect(checkBudgets([parent, child])).toEqual([])
        const counted = parent.find((event) => event.type === 'tool_result')
        if (counted?.child?.estimated === true) late++
        expect(child.at(-1)).toMatchObject({ type: 'run_finished', reason: 'cancelled' })
        await store.close()
      }
      expect(late).toBeGreaterThan(0)
    },
  )
})
