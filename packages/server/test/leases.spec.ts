import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { createRuntime, defineAgent, type Ledger, type RunId } from '@tallystick/core'
import { manualClock, scriptedModel, testTool } from '@tallystick/core/testing'
import { sqliteLedger } from '@tallystick/ledger/sqlite'
import { supervise, type Supervisor, type SuperviseOptions } from '@tallystick/server'

const hour = 3_600_000

/** A file that several processes write: its ledger cannot tell which of them drives a run. */
function openFile(): Ledger {
  const folder = mkdtempSync(join(tmpdir(), 'tallystick-leases-'))
  const ledger = sqliteLedger(join(folder, 'runs.db'), { oneWriter: false })
  Reflect.deleteProperty(ledger, 'isDriven')
  onTestFinished(async () => {
    await ledger.close()
    rmSync(folder, { recursive: true })
  })
  return ledger
}

type Steps = Parameters<typeof scriptedModel>[0]

/** A process with a runtime and a supervisor, which looks when it is asked to. */
function openProcess(ledger: Ledger, steps: Steps, options: Partial<SuperviseOptions> = {}) {
  const faults: unknown[] = []
  const report = (error: unknown): unknown => faults.push(error)
  const model = scriptedModel(steps)
  const pay = testTool({ name: 'pay', check: () => ({ kind: 'ask' }), run: () => 'Paid.' })
  const agent = defineAgent({ name: 'teller', instructions: 'Answer.', model, tools: [pay] })
  const runtime = createRuntime({ ledger, agents: [agent], host: { report } })
  onTestFinished(async () => void (await runtime.drain(0)))
  const open = (): Supervisor => {
    const supervisor = supervise({ runtime, ledger, report, everyMs: hour, ...options })
    onTestFinished(() => supervisor.stop())
    return supervisor
  }
  return { agent, faults, model, open, runtime }
}

/** A run whose process is gone in the middle of a reply. */
async function interruptedRun(ledger: Ledger): Promise<RunId> {
  const { agent, runtime } = openProcess(ledger, hanging)
  const run = runtime.run(agent, 'Hi.')
  run.result.catch(() => {})
  for await (const event of run) if (event.type === 'assistant_started') break
  await runtime.drain(0)
  return run.id
}

const hanging: Steps = [{ text: 'I think', hang: true }]

/** Lets what is under way come to an end: the ledger answers in turns of the event loop. */
async function until(isSo: () => boolean | Promise<boolean | undefined>): Promise<void> {
  while (!(await isSo())) await new Promise(setImmediate)
}

describe('supervisors that share a ledger with leases', () => {
  it('leave a run to the one that has its lease, for as long as that one drives it', async () => {
    const ledger = openFile()
    const runId = await interruptedRun(ledger)
    const both = [1, 2].map(() => openProcess(ledger, hanging, { quietMs: 1 }))
    const supervisors = both.map(({ open }) => open())
    const look = async () => (await Promise.all(supervisors.map((each) => each.look()))).flat()
    await until(async () => {
      await look()
      return both.some(({ model }) => model.requests.length > 0)
    })
    for (let looks = 0; looks < 5; looks++) expect(await look()).toEqual([])
    expect(both.reduce((sum, { model }) => sum + model.requests.length, 0)).toBe(1)
    expect((await ledger.head(runId))?.epoch).toBe(2)
    const holder = both.findIndex(({ model }) => model.requests.length > 0)
    await both[holder]!.runtime.drain(0)
    await until(async () => (await supervisors[1 - holder]!.look())[0] === runId)
    expect(both.flatMap(({ faults }) => faults)).toEqual([])
  })

  it('take a run up whose holder has gone, however short it has been quiet', async () => {
    const ledger = openFile()
    const [runId, other] = [await interruptedRun(ledger), await interruptedRun(ledger)]
    const supervisor = openProcess(ledger, [{ text: 'Done.' }]).open()
    expect(await supervisor.look()).toEqual([])
    expect(await ledger.leases?.take(runId, 'a process that died', 0)).toBe(true)
    expect(await ledger.leases?.take(other, 'a process that lives', hour)).toBe(true)
    expect(await supervisor.look()).toEqual([runId])
  })

  it('give a lease back if another has resumed the run since it was found', async () => {
    const ledger = openFile()
    const runId = await interruptedRun(ledger)
    const late: Ledger = {
      ...ledger,
      leases: {
        ...ledger.leases!,
        async take(...args) {
          const other = openProcess(ledger, hanging)
          other.runtime.resume(runId).result.catch(() => {})
          await until(() => other.model.requests.length > 0)
          await other.runtime.drain(0)
          return await ledger.leases!.take(...args)
        },
      },
    }
    await ledger.leases!.take(runId, 'a process that died', 0)
    const { faults, model, open } = openProcess(late, [{ text: 'Done.' }])
    expect(await open().look()).toEqual([])
    expect(await ledger.leases?.take(runId, 'another', hour)).toBe(true)
    expect(model.requests).toEqual([])
    expect(faults).toEqual([])
  })

  it('renew what they have three times while it lasts, also after a failure, and end with it', async () => {
    const ledger = openFile()
    const runId = await interruptedRun(ledger)
    await ledger.leases!.take(runId, 'a process that died', 0)
    const renewed: number[] = []
    const watched: Ledger = {
      ...ledger,
      leases: {
        ...ledger.leases!,
        async renew(holder, forMs) {
          renewed.push(forMs)
          await ledger.leases!.renew(holder, forMs)
          if (renewed.length === 1) throw new Error('The answer was lost.')
        },
      },
    }
    const clock = manualClock()
    const { faults, model, open, runtime } = openProcess(watched, hanging, {
      ...{ clock, leaseMs: 3_000, everyMs: hour },
    })
    open()
    await until(() => model.requests.length === 1 && clock.pending === 2)
    for (let count = 1; count <= 2; count++) {
      clock.advance(999)
      expect(renewed).toHaveLength(count - 1)
      clock.advance(1)
      await until(() => renewed.length === count && clock.pending === 2)
    }
    expect(renewed).toEqual([3_000, 3_000])
    expect(faults).toEqual([new Error('The answer was lost.')])
    await runtime.drain(0)
    await until(async () => await ledger.leases?.take(runId, 'another', 0))
    expect(clock.pending).toBe(1)
  })

  it('leave a command to the process that put it, and take the run up if it is still there at the next look', async () => {
    const ledger = openFile()
    const asking = openProcess(ledger, [{ toolCalls: [{ name: 'pay', input: {} }] }])
    const { runId, pendingApprovals } = await asking.runtime.run(asking.agent, 'Pay.').result
    const supervisor = openProcess(ledger, [{ text: 'Paid.' }]).open()
    await supervisor.look()
    const [{ toolCallId } = { toolCallId: '' as never }] = pendingApprovals
    await ledger.put(runId, {
      key: 'k1',
      command: { type: 'approve', toolCallId, by: 'ada' },
      at: 1_760_000_000_000,
    })
    expect(await supervisor.look()).toEqual([])
    expect(await supervisor.look()).toEqual([runId])
  })
})
