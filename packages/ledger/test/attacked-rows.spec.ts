import { copyFileSync } from 'node:fs'
import { LedgerDamagedError, type Ledger, type RuntimeEvent } from '@tallystick/core'
import { everyFact, sampleRunId, stamped } from '@tallystick/core/testing'
import { redact, verifyLedger, verifyRun } from '@tallystick/ledger'
import { sqliteLedger } from '@tallystick/ledger/sqlite'
import { describe, expect, it, onTestFinished } from 'vitest'
import { segmentLines } from '../src/record/segments/segmented-body.ts'
import { fileRowBed } from './support/file-row-bed.ts'
import { attackedRowCases } from './support/attacked-row-cases.ts'
import { forgeRun } from './support/forged-ledger.ts'
import { goldenFiles } from './support/golden.ts'
import { tamper } from './support/raw-database.ts'
import { emptyLedgerFile } from './support/temporary-folder.ts'

describe('rows of a ledger file that an attacker writes', () => {
  it.each(Object.entries(attackedRowCases))('%s', async (_claim, holds) => {
    await expect(holds(fileRowBed())).resolves.toBeUndefined()
  })
})

describe('a row of which segments were taken away', () => {
  it('is written so only where one is gone: a whole row has one form', () => {
    const written = (line: string, opened: string): Uint8Array =>
      Buffer.from(`{"heads":["usage_updated"],"segments":[\n${line}\n],"opened":["${opened}"]}`)
    expect(segmentLines(written('null', 'a'.repeat(64)))).toBeDefined()
    expect(segmentLines(written('{}', 'a'.repeat(32)))).toBeUndefined()
  })
})

describe('a body of forged bytes that are no JSON', () => {
  const runId = sampleRunId(1)
  const facts = everyFact(runId)
  const secret = 'the-secret'

  async function forged(type: string): Promise<Ledger> {
    const path = emptyLedgerFile()
    const ledger = sqliteLedger(path)
    const events = stamped(runId, [
      ...[facts.run_started, facts.input_received, facts.model_call_started],
      ...['a', 'b'].map((text) => ({ ...facts.assistant_text_delta, text })),
      facts.usage_updated,
    ]).map((event): RuntimeEvent => ({ ...event, turn: 1 }))
    await ledger.append(runId, { expectedSeq: 0, epoch: 1 }, events, { durability: 'lazy' })
    await ledger.close()
    forgeRun(path, runId, (event) => (event.type === type ? { ...event, text: `{${secret}` } : event))
    const opened = sqliteLedger(path)
    onTestFinished(() => opened.close())
    return opened
  }

  it.each(['input_received', 'assistant_text_delta', 'usage_updated'])(
    'of %s is damage to every reader, none of which says what the bytes are',
    async (type) => {
      const ledger = await forged(type)
      const everySeq = [1, 2, 3, 4, 5, 6]
      for (const read of [
        () => Array.fromAsync(ledger.read(runId)),
        () => Array.fromAsync(ledger.find({ runId })),
        () => Array.fromAsync(ledger.tail()),
        () => redact(ledger, runId, everySeq, { by: 'me', reason: 'asked' }),
      ]) {
        const error: unknown = await read().catch((thrown: unknown) => thrown)
        expect(error).toBeInstanceOf(LedgerDamagedError)
        expect(String(error)).not.toContain(secret)
      }
      const { broken } = await verifyRun(ledger, runId)
      expect(broken).toMatchObject({ what: 'body' })
      expect(JSON.stringify(broken)).not.toContain(secret)
    },
  )
})

describe('a file of an older schema in which two events name one fact', () => {
  it('is brought up to date, and verified: the fault is found where it is', async () => {
    const path = emptyLedgerFile()
    copyFileSync(goldenFiles(3).ledger, path)
    tamper(path, (database) =>
      database.exec(
        `update event set once_key = (select replace(started.once_key, ' 1', '_1') from event as started
             where started.run_id = event.run_id and type = 'tool_started' order by seq limit 1)
           where pos = (select min(pos) from event where type = 'tool_result')`,
      ),
    )
    const ledger = sqliteLedger(path)
    onTestFinished(() => ledger.close())
    const broken = (await Array.fromAsync(verifyLedger(ledger))).filter(
      ({ ok, scope }) => !ok && scope === 'run',
    )
    expect(broken).toMatchObject([{ broken: { what: 'once_key' } }])
  })
})
