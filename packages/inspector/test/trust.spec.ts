import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createRuntime, defineAgent, type Ledger, memoryLedger, type RunId } from '@tallystick/core'
import type { OpenLedger } from '@tallystick/core/store-kit'
import { readRecord, redact } from '@tallystick/ledger'
import { sqliteLedger } from '@tallystick/ledger/sqlite'
import { manualClock, scriptedModel, testTool } from '@tallystick/testkit'
import { afterAll, expect, it } from 'vitest'
import type { RecordRow } from '../src/api.ts'
import { RunModel } from '../src/page/worker/run-model.ts'
import { RecordVerifier, toRanges, type Trust } from '../src/page/worker/trust.ts'
import { readModel } from './support/read-model.ts'

const folder = mkdtempSync(join(tmpdir(), 'trust-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))
let files = 0
const openLedger = (): OpenLedger => sqliteLedger(join(folder, `${files++}.db`))

async function play(ledger: Ledger): Promise<RunId> {
  const agent = defineAgent({
    name: 'clerk',
    instructions: 'Answer briefly.',
    model: scriptedModel([
      { text: 'Let me look.', toolCalls: [{ name: 'look', input: { order: 'A-7' } }] },
      { text: 'It is on its way.' },
    ]),
    tools: [testTool({ name: 'look', run: () => 'sent' })],
  })
  const run = createRuntime({ ledger, agents: [agent], host: { clock: manualClock() } }).run(
    agent,
    'Where is A-7?',
  )
  await run.result
  return run.id
}

/** The last of what is reported, where rows come five at a time. */
async function verify(model: RunModel, rows: readonly RecordRow[]): Promise<Trust> {
  const reports: Trust[] = []
  const readRows = async (after: number): Promise<readonly RecordRow[]> => rows.slice(after, after + 5)
  await new RecordVerifier(model, readRows, (trust) => reports.push(trust)).continue()
  expect(reports.slice(0, -1).every(({ isDone }) => !isDone)).toBe(true)
  return reports.at(-1)!
}

it('verifies every event of a run, and names the row in which a byte was changed', async () => {
  const ledger = openLedger()
  const runId = await play(ledger)
  const [model, rows] = [await readModel(ledger, runId), await readRecord(ledger, runId)]
  const last = rows.at(-1)!
  expect(await verify(model, rows)).toMatchObject({
    ...{ verified: last.seq, of: last.seq, isDone: true, lastHash: last.hash },
    ...{ removed: [], sealed: [] },
  })
  const fifth = rows[4]!
  const changed = rows.with(4, { ...fifth, body: fifth.body.replace(/[a-z]/, 'X') })
  expect(await verify(model, changed)).toMatchObject({ verified: 4, fault: { seq: 5, what: 'hash' } })
  expect(await verify(model, rows.slice(0, 4))).toMatchObject({ verified: 4, fault: { seq: 5, what: 'row' } })
  await ledger.close()
})

it('verifies a run with a removed event, and says who removed it and why', async () => {
  const ledger = openLedger()
  const runId = await play(ledger)
  await redact(ledger, runId, [2], { by: 'ada', reason: 'an address', at: 7 })
  const [model, rows] = [await readModel(ledger, runId), await readRecord(ledger, runId)]
  const trust = await verify(model, rows)
  expect(trust).not.toHaveProperty('fault')
  expect(trust.verified).toBe(rows.length)
  expect(trust.removed).toEqual([
    { kind: 'redacted', by: 'ada', reason: 'an address', at: 7, events: [[2, 2]] },
  ])
  await ledger.close()
})

it('checks the laws alone where the rows are not to be had, and says why', async () => {
  const ledger = memoryLedger()
  const model = await readModel(ledger, await play(ledger))
  const reports: Trust[] = []
  const refuse = (): Promise<never> => Promise.reject(new Error('This ledger keeps no chain of hashes.'))
  const verifyLaws = async (of: RunModel): Promise<Trust> => {
    await new RecordVerifier(of, refuse, (trust) => reports.push(trust)).continue()
    return reports.at(-1)!
  }
  const last = model.lastSeq
  expect(await verifyLaws(model)).toMatchObject({
    ...{ verified: last, of: last, isDone: true, lawsOnly: 'This ledger keeps no chain of hashes.' },
  })
  const forged = new RunModel()
  forged.add(
    model.events.map((event) => (event.type === 'run_finished' ? { ...event, toolCalls: 9 } : event)),
  )
  expect(await verifyLaws(forged)).toMatchObject({ verified: last - 1, fault: { seq: last, what: 'law 6' } })
})

it('verifies what comes later, and no event twice', async () => {
  const ledger = openLedger()
  const runId = await play(ledger)
  const [whole, rows] = [await readModel(ledger, runId), await readRecord(ledger, runId)]
  const model = new RunModel()
  model.add(whole.events.slice(0, 6))
  const [reports, asked]: [Trust[], number[]] = [[], []]
  const readRows = async (after: number): Promise<readonly RecordRow[]> => {
    asked.push(after)
    return rows.slice(after)
  }
  const verifier = new RecordVerifier(model, readRows, (trust) => reports.push(trust))
  await verifier.continue()
  expect(reports.at(-1)).toMatchObject({ verified: 6, of: 6 })
  model.add(whole.events)
  await verifier.continue()
  expect(reports.at(-1)).toMatchObject({ verified: rows.length, of: rows.length })
  verifier.stop()
  await verifier.continue()
  expect(asked).toEqual([0, 6])
  await ledger.close()
})

it('writes numbers in a row as a range', () => {
  expect(toRanges([1, 2, 3, 7, 9, 10])).toEqual([
    [1, 3],
    [7, 7],
    [9, 10],
  ])
  expect(toRanges([])).toEqual([])
})
