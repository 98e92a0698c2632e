import { agentTool, createRuntime, defineAgent, type Ledger, type RunId } from '@tallystick/core'
import { manualClock, scriptedModel, testTool, waitUntilSettled, watchedLedger } from '@tallystick/testkit'
import { foldTo, verifyRun } from '@tallystick/ledger'
import { expect } from 'vitest'
import { eventsOf, secret, type RemovalBed } from './removal-bed.ts'

/** A desk, of which only digests stay, that asks a helper in a run of its own. */
function desk(ledger: Ledger) {
  const clock = manualClock()
  const { ledger: watched, outside } = watchedLedger(ledger)
  const gate = Promise.withResolvers<void>()
  let isHeld = false
  const view: Ledger = {
    ...watched,
    async append(runId, ...given) {
      if (isHeld && runId !== run.id) await gate.promise
      return await watched.append(runId, ...given)
    },
  }
  const look = testTool({ name: 'look', run: () => `Found ${secret}.` })
  const helper = defineAgent({
    ...{ name: 'helper', description: 'Helps.', instructions: `Help with ${secret}.`, tools: [look] },
    model: scriptedModel([
      { toolCalls: [{ name: 'look', input: { for: secret } }] },
      { text: `Helped with ${secret}.` },
    ]),
  })
  const boss = defineAgent({
    ...{ name: 'desk', instructions: `Ask for ${secret}.`, tools: [agentTool(helper)] },
    model: scriptedModel([{ toolCalls: [{ name: 'helper', input: { task: secret } }] }, { text: secret }]),
  })
  const runtime = createRuntime({ ledger: view, agents: [boss], host: { clock, report: () => {} } })
  const run = runtime.run(boss, secret, { recording: { content: 'digests' } })
  const begun = Promise.withResolvers<RunId>()
  run.events$.subscribe((event) => {
    if (event.type === 'tool_started' && event.child) begun.resolve(event.child)
  })
  return {
    ...{ runtime, run, childId: begun.promise },
    settled: <T>(promise: Promise<T>): Promise<T> => waitUntilSettled(clock, promise, outside),
    /** From here on, what the child run writes does not reach its ledger. */
    holdChild: (): void => {
      isHeld = true
    },
    letChildGo: (): void => gate.resolve(),
  }
}

async function requireSound(ledger: Ledger, runId: RunId): Promise<void> {
  expect(await verifyRun(ledger, runId)).toMatchObject({ ok: true })
  expect(await foldTo(ledger, runId)).toMatchObject({ phase: 'done' })
  const removals = (await eventsOf(ledger, runId)).flatMap(({ removed }) => (removed ? [removed.by] : []))
  expect(new Set(removals)).toEqual(new Set(['the recording policy of the run']))
}

/** What `content: 'digests'` promises of a store, each case by its claim. */
export const digestsOnlyCases: Readonly<Record<string, (bed: RemovalBed) => Promise<void>>> = {
  async 'a run of which only digests stay keeps nothing that was said, nor do its child runs'({
    open,
    holds,
  }) {
    const ledger = open()
    const { runtime, run, settled, childId } = desk(ledger)
    expect(await settled(run.result)).toMatchObject({ reason: 'answered', text: secret })
    await settled(runtime.idle())
    for (const runId of [run.id, await childId]) await requireSound(ledger, runId)
    await ledger.close()
    expect(await holds(secret)).toBe(false)
  },

  async 'a child run that ends after its parent keeps nothing that was said either'({ open, holds }) {
    const ledger = open()
    const { runtime, run, settled, childId, holdChild, letChildGo } = desk(ledger)
    run.events$.subscribe(({ type, turn }) => {
      if (type !== 'tool_started' || turn !== 1) return
      void childId.then(holdChild).then(() => run.cancel('Enough.'))
    })
    expect(await settled(run.result)).toMatchObject({ reason: 'cancelled' })
    const child = await childId
    expect((await eventsOf(ledger, child)).map(({ type }) => type)).not.toContain('run_finished')
    letChildGo()
    await settled(runtime.idle())
    expect((await eventsOf(ledger, child)).at(-1)).toMatchObject({
      type: 'run_finished',
      reason: 'cancelled',
    })
    for (const runId of [run.id, child]) await requireSound(ledger, runId)
    await ledger.close()
    expect(await holds(secret)).toBe(false)
  },
}
