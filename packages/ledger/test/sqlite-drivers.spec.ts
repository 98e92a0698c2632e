import { createRuntime, defineAgent, type Ledger, type RunId } from '@tallystick/core'
import { everyFact, sampleMessage, sampleRunId, scriptedModel, stamped } from '@tallystick/core/testing'
import { sqliteLedger, type SqliteLedgerOptions } from '@tallystick/ledger/sqlite'
import { describe, expect, it, onTestFinished } from 'vitest'
import { temporaryFile } from './support/temporary-folder.ts'
import { writerProcess } from './support/writer-process.ts'

const barrier = { durability: 'barrier' } as const
const [theirs, mine] = [sampleRunId(1), sampleRunId(2)]
const atStart = { expectedSeq: 0, epoch: 1 }

/** A run without a parent, in its first model call. */
function started(runId: RunId, sessionPlace: number): ReturnType<typeof stamped> {
  const { run_started, model_call_started } = everyFact(runId)
  const { parent: _none, ...fact } = run_started
  return stamped(runId, [
    { ...fact, sessionId: 'chat', sessionPlace },
    { type: 'input_received', turn: 0, message: sampleMessage('x'), delivery: 'start' },
    { ...model_call_started, turn: 1, attempt: 1 },
  ])
}

function open(path: string, options: SqliteLedgerOptions = {}): Ledger {
  const ledger = sqliteLedger(path, options)
  onTestFinished(() => ledger.close())
  return ledger
}

/** The runs that a runtime of this process finds interrupted. */
async function interrupted(ledger: Ledger): Promise<readonly string[]> {
  return (await Array.fromAsync(createRuntime({ ledger }).interrupted())).map(({ runId }) => runId)
}

describe('whether a process drives a run of a ledger file', () => {
  it('is not known while another process writes, and known as soon as that one was killed', async () => {
    const path = temporaryFile()
    const writer = await writerProcess(path)
    await writer.ask('append', theirs, atStart, started(theirs, 1), barrier)
    const ledger = open(path)
    expect(await ledger.isDriven?.(theirs)).toBeUndefined()
    expect(await interrupted(ledger)).toEqual([])
    await writer.kill()
    expect(await ledger.isDriven?.(theirs)).toBe(false)
    expect(await interrupted(ledger)).toEqual([theirs])
    await ledger.append(mine, atStart, started(mine, 2), barrier)
    expect([await ledger.isDriven?.(theirs), await ledger.isDriven?.(mine)]).toEqual([false, true])
    // Whichever ledger of the process drives it.
    expect(await open(path).isDriven?.(mine)).toBe(true)
  })

  it('is known of what a process left that has closed the file', async () => {
    const path = temporaryFile()
    const first = sqliteLedger(path)
    await first.append(theirs, atStart, started(theirs, 1), barrier)
    await first.close()
    const ledger = open(path)
    expect(await interrupted(ledger)).toEqual([theirs])
    const agent = defineAgent({ name: 'a', instructions: 'Act.', model: scriptedModel([]) })
    const run = createRuntime({ ledger }).run(agent, 'x', { sessionId: 'chat', whenBusy: 'wait' })
    await expect(run.result).rejects.toMatchObject({ busy: { runId: theirs, status: 'interrupted' } })
  })

  it('is not known where several may write, or nothing can be written', async () => {
    const path = temporaryFile()
    const several = open(path, { oneWriter: false })
    await several.append(theirs, atStart, started(theirs, 1), barrier)
    for (const ledger of [several, open(path, { readOnly: true })]) {
      expect(await ledger.isDriven?.(theirs)).toBeUndefined()
      expect(await interrupted(ledger)).toEqual([])
    }
  })
})
