import {
  ConfigurationError,
  memoryLedger,
  RunNotFoundError,
  type Ledger,
  type RunState,
} from '@tallystick/core'
import { evolve } from '@tallystick/core/machine'
import { sampleRunId, stampFacts } from '@tallystick/testkit'
import { exportEvents, foldTo } from '@tallystick/ledger'
import { sqliteLedger } from '@tallystick/ledger/sqlite'
import { describe, expect, it } from 'vitest'
import { recordRun } from './support/record-run.ts'
import { emptyLedgerFile } from './support/temporary-folder.ts'

describe('foldTo', () => {
  it('gives the state of every seq, as folding the events one by one gives it', async () => {
    const ledger = sqliteLedger(emptyLedgerFile())
    const runId = await recordRun(ledger)
    let state: RunState | undefined
    for await (const event of ledger.read(runId)) {
      state = evolve(state, event)
      expect(await foldTo(ledger, runId, event.seq)).toEqual(state)
    }
    expect(state?.phase).toBe('done')
    expect(await foldTo(ledger, runId)).toEqual(state)
    await ledger.close()
  })

  it('refuses a seq that the run does not have, and a run that the ledger does not have', async () => {
    const ledger = memoryLedger()
    const runId = await recordRun(ledger)
    const last = (await ledger.head(runId))?.seq ?? 0
    for (const seq of [0, -1, last + 1, 1.5, Number.NaN]) {
      await expect(foldTo(ledger, runId, seq)).rejects.toThrow(ConfigurationError)
    }
    await expect(foldTo(ledger, runId, last + 1)).rejects.toThrow(`has the events 1 to ${last}`)
    await expect(foldTo(ledger, sampleRunId(9))).rejects.toThrow(RunNotFoundError)
  })
})

describe('exportEvents', () => {
  const linesOf = (ledger: Ledger): Promise<string[]> => Array.fromAsync(exportEvents(ledger))

  it('writes one event a line, the envelope first and in one order', async () => {
    const ledger = memoryLedger()
    const runId = sampleRunId(1)
    const events = stampFacts(runId, [
      { type: 'cancel_requested', turn: 0, reason: 'Odd: \u2028 \ud800 \n "x"', by: 'ada' },
      { type: 'assistant_started', turn: 1, attempt: 1 },
    ])
    await ledger.append(runId, { expectedSeq: 0, epoch: 1 }, events, { durability: 'lazy' })
    expect(await linesOf(ledger)).toEqual([
      `{"runId":"${runId}","seq":1,"epoch":1,"turn":0,"type":"cancel_requested","v":1,"at":1760000000001,` +
        `"by":"ada","reason":"Odd: \u2028 \\ud800 \\n \\"x\\""}`,
      `{"runId":"${runId}","seq":2,"epoch":1,"turn":1,"type":"assistant_started","v":1,"at":1760000000002,"attempt":1}`,
    ])
  })

  it('loses nothing: every line read back is the event', async () => {
    const ledger = sqliteLedger(emptyLedgerFile())
    const runId = await recordRun(ledger)
    const lines = await Array.fromAsync(exportEvents(ledger, runId))
    expect(lines.map((line): unknown => JSON.parse(line))).toEqual(await Array.fromAsync(ledger.read(runId)))
    expect(lines.filter((line) => line.includes('\n'))).toEqual([])
    const call = lines.find((line) => line.includes('"tool_started"'))
    expect(Object.keys(JSON.parse(call ?? '{}') as object).slice(0, 8)).toEqual([
      ...['runId', 'seq', 'epoch', 'turn', 'toolCallId', 'type', 'v', 'at'],
    ])
    await ledger.close()
  })

  it('writes the same lines from any ledger', async () => {
    const [memory, file] = [memoryLedger(), sqliteLedger(emptyLedgerFile())]
    const runId = await recordRun(memory)
    const events = await Array.fromAsync(memory.read(runId))
    await file.append(runId, { expectedSeq: 0, epoch: 1 }, events, { durability: 'lazy' })
    expect(await linesOf(file)).toEqual(await linesOf(memory))
    await file.close()
  })

  it('exports every run, in the order in which they were made, where none is named', async () => {
    const ledger = memoryLedger()
    const runIds = [await recordRun(ledger, 1), await recordRun(ledger, 2)]
    const exported = (await linesOf(ledger)).map((line) => (JSON.parse(line) as { runId: string }).runId)
    expect([...new Set(exported)]).toEqual(runIds)
  })

  it('exports types that this version does not know', async () => {
    const ledger = sqliteLedger(emptyLedgerFile())
    const runId = sampleRunId(1)
    const event = {
      ...stampFacts(runId, [{ type: 'cancel_requested', turn: 0 }])[0],
      type: 'from_the_future',
      v: 7,
      x: [1],
    }
    await ledger.append(runId, { expectedSeq: 0, epoch: 1 }, [event as never], { durability: 'lazy' })
    expect((await linesOf(ledger)).map((line): unknown => JSON.parse(line))).toEqual([event])
    await ledger.close()
  })

  it('refuses a run that the ledger does not have', async () => {
    await expect(Array.fromAsync(exportEvents(memoryLedger(), sampleRunId(9)))).rejects.toThrow(
      RunNotFoundError,
    )
  })
})
