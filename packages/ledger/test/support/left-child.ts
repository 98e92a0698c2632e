import {
  agentTool,
  createRuntime,
  defineAgent,
  type Ledger,
  type RunId,
  type RuntimeEvent,
} from '@tallystick/core'
import { manualClock, scriptedModel, testTool, waitUntilSettled, watchedLedger } from '@tallystick/testkit'
import { expect } from 'vitest'

const usage = { inputTokens: 100, outputTokens: 20 }
/** Longer than any store takes for what else a family asks of it in the meantime. */
const lateTurns = 200

/** Calls of a ledger that can be late. */
export const lateCalls = ['append', 'read', 'head', 'put', 'inbox'] as const

/** A call of the ledger that takes many turns of the event loop: the nth of its kind about the parent or the child. */
export interface LateCall {
  readonly call: (typeof lateCalls)[number]
  readonly about: 'parent' | 'child'
  readonly nth: number
}

/** How a family is played. */
export interface FamilyPlay {
  /** The append of the child that waits, with all after it, until the parent has ended. */
  readonly heldFrom: number
  readonly late?: LateCall
  readonly limits?: { readonly maxTotalTokens?: number }
}

/** The ledger with one late call. */
function withLateCall(store: Ledger, late: LateCall | undefined, isAbout: (runId: RunId) => boolean): Ledger {
  let calls = 0
  const wait = async (call: LateCall['call'], runId: RunId): Promise<void> => {
    if (call !== late?.call || !isAbout(runId) || ++calls !== late.nth) return
    for (let turn = 0; turn < lateTurns; turn++) await new Promise(setImmediate)
  }
  return {
    ...store,
    async append(runId, ...given) {
      await wait('append', runId)
      return await store.append(runId, ...given)
    },
    async *read(runId, range) {
      await wait('read', runId)
      yield* store.read(runId, range)
    },
    async head(runId) {
      await wait('head', runId)
      return await store.head(runId)
    },
    async put(runId, entry) {
      await wait('put', runId)
      return await store.put(runId, entry)
    },
    async inbox(runId) {
      await wait('inbox', runId)
      return await store.inbox(runId)
    },
  }
}

/** Plays a family of two, of which the parent is cancelled once the child is held. */
export async function playFamily(
  store: Ledger,
  { heldFrom, late, limits = {} }: FamilyPlay,
): Promise<{ readonly parent: readonly RuntimeEvent[]; readonly child: readonly RuntimeEvent[] }> {
  const clock = manualClock()
  const isAbout = (runId: RunId): boolean => (runId === run.id) === (late?.about === 'parent')
  const { ledger: watched, outside } = watchedLedger(withLateCall(store, late, isAbout))
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
  const settled = <T>(promise: Promise<T>): Promise<T> => waitUntilSettled(clock, promise, outside)
  await settled(isHeld.promise)
  void run.cancel('Enough.')
  expect(await settled(ended)).toMatchObject({ reason: 'cancelled' })
  gate.resolve()
  await settled(runtime.idle())
  const parent = await Array.fromAsync(store.read(run.id))
  const child = parent.flatMap((event) => (event.type === 'tool_started' && event.child) || [])[0] as RunId
  return { parent, child: await Array.fromAsync(store.read(child)) }
}

/** Demands that the child is cancelled, from whichever append on it was held, and whichever call of the ledger was late. */
export async function demandCancelled(open: () => Ledger, nths: readonly number[]): Promise<void> {
  for (const heldFrom of [1, 2, 3]) {
    for (const call of lateCalls) {
      for (const about of ['parent', 'child'] as const) {
        for (const nth of nths) {
          const store = open()
          const late = { call, about, nth }
          const { parent, child } = await playFamily(store, { heldFrom, late })
          const reasons = [parent, child].map((events) =>
            events.flatMap((event) => (event.type === 'run_finished' ? event.reason : [])),
          )
          expect({ heldFrom, late, reasons }).toEqual({
            heldFrom,
            late,
            reasons: [['cancelled'], ['cancelled']],
          })
          const didWork = child.some(({ type }) => type === 'tool_started')
          expect({ heldFrom, late, didWork: heldFrom === 1 && didWork }).toEqual({
            heldFrom,
            late,
            didWork: false,
          })
          await store.close()
        }
      }
    }
  }
}
