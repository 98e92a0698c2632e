import { once } from 'node:events'
import { chmodSync, readdirSync } from 'node:fs'
import { dirname } from 'node:path'
import { LedgerConflictError, type Ledger } from '@tallystick/core'
import { type Head } from '@tallystick/core/vocabulary'
import { sampleFacts, sampleMessage, sampleRunId, stampFacts } from '@tallystick/testkit'
import { verifyLedger } from '@tallystick/ledger'
import { sqliteLedger, type SqliteLedgerOptions } from '@tallystick/ledger/sqlite'
import { firstValueFrom } from 'rxjs'
import { describe, expect, it } from 'vitest'
import { findLinkFault, genesis, type Link } from '../src/format/event-row.ts'
import { readRows } from '../src/store/records.ts'
import { auditStore } from '../src/verify/store-audit.ts'
import { ledgerChild } from './support/child-process.ts'
import { temporaryFile } from './support/temporary-folder.ts'
import { storeOf } from './support/lent-store.ts'

const run = sampleRunId(1)
const facts = sampleFacts(run)
const start = stampFacts(run, [facts.run_started])

async function startedLedger(path: string, options: SqliteLedgerOptions = {}): Promise<Ledger> {
  const ledger = sqliteLedger(path, { pollIntervalMs: 5, ...options })
  await ledger.append(run, { expectedSeq: 0, epoch: 1 }, start, { durability: 'barrier' })
  return ledger
}

/** The chain of the run from its first link; the events of these tests are no legal run, so no law is asked. */
async function chainFaults(ledger: Ledger): Promise<readonly unknown[]> {
  let last: Link = genesis
  const faults: unknown[] = []
  for (;;) {
    const rows = await readRows(storeOf(ledger).database, {
      runId: run,
      fromSeq: last.seq + 1,
      toSeq: Number.MAX_SAFE_INTEGER,
    })
    if (rows.length === 0) break
    for (const row of rows) {
      const fault = findLinkFault(last, row)
      if (fault) faults.push(fault)
      last = row
    }
  }
  return faults
}

describe('a process that is killed', () => {
  it('loses nothing that it acknowledged, time and again on one file', async () => {
    const path = temporaryFile()
    let acknowledged = 0
    for (const [round, acknowledgements] of [1, 2, 7, 3, 19].entries()) {
      const child = ledgerChild(['append', path])
      let received = 0
      for await (const line of child.lines) {
        const said = JSON.parse(line) as Head | 'opening'
        if (said === 'opening') continue
        acknowledged = said.seq
        received++
        if (received === acknowledgements) void child.kill()
      }
      await child.kill()
      expect(received).toBeGreaterThanOrEqual(acknowledgements)
      const ledger = sqliteLedger(path)
      const head = await ledger.head(run)
      expect(head?.seq).toBeGreaterThanOrEqual(acknowledged)
      expect(head?.epoch).toBe(round + 1)
      expect(await chainFaults(ledger)).toEqual([])
      expect((await Array.fromAsync(ledger.read(run))).length).toBe(head?.seq)
      expect((await auditStore(storeOf(ledger))).broken).toBeUndefined()
      await ledger.close()
    }
  })

  it('leaves a file that opens, with all that it acknowledged, when it was killed while opening or closing', async () => {
    const path = temporaryFile()
    const acknowledged: number[] = []
    for (const [round, killedAt] of [2, 3, 8, 9, 15].entries()) {
      const child = ledgerChild(['cycle', path, String((round + 1) * 1000)])
      let received = 0
      for await (const line of child.lines) {
        const said = JSON.parse(line) as number | 'closed'
        if (said !== 'closed') acknowledged.push(said)
        received++
        if (received === killedAt) void child.kill()
      }
      await child.kill()
      const ledger = sqliteLedger(path)
      const present = (await Array.fromAsync(ledger.runs())).map(({ runId }) => runId)
      expect(present).toEqual(expect.arrayContaining(acknowledged.map((ordinal) => sampleRunId(ordinal))))
      expect((await Array.fromAsync(verifyLedger(ledger))).at(-1)).toMatchObject({ ok: true })
      await ledger.close()
      expect(readdirSync(dirname(path))).toEqual(['runs.db'])
    }
  })

  it('leaves a file that opens, at whatever moment of making it the process was killed', async () => {
    const path = temporaryFile()
    for (const stage of ['spawned', 'opening', 'opening', 'opening']) {
      const child = ledgerChild(['append', path])
      if (stage === 'opening') await once(child.lines, 'line')
      await child.kill()
      const ledger = sqliteLedger(path)
      const head = await ledger.head(run)
      expect(await Array.fromAsync(ledger.runs())).toEqual(head ? [{ runId: run, head }] : [])
      expect(await chainFaults(ledger)).toEqual([])
      expect((await auditStore(storeOf(ledger))).broken).toBeUndefined()
      await ledger.close()
    }
  })
})

describe('several processes', () => {
  it('make one ledger when they begin at once', async () => {
    const path = temporaryFile()
    const ordinals = [1, 2, 3, 4]
    const said = await Promise.all(
      ordinals.map((ordinal) => ledgerChild(['make', path, String(ordinal)]).ended()),
    )
    expect(said).toEqual(ordinals.map(() => [{ seq: 1, epoch: 1 }]))
    const ledger = sqliteLedger(path)
    const runIds = (await Array.fromAsync(ledger.runs())).map(({ runId }) => runId)
    expect(runIds.toSorted()).toEqual(ordinals.map((ordinal) => sampleRunId(ordinal)))
    expect((await Array.fromAsync(verifyLedger(ledger))).at(-1)).toMatchObject({
      ok: true,
      runs: 4,
      events: 4,
    })
    await ledger.close()
  })

  it('hand commands over: what one puts is hinted at and read by the other', async () => {
    const path = temporaryFile()
    const ledger = await startedLedger(path)
    const hint = firstValueFrom(ledger.changes(run))
    expect(await ledgerChild(['put', path, 'k1']).ended()).toEqual([true])
    await hint
    const command = { type: 'steer', message: sampleMessage('k1'), receipt: 'k1' }
    expect(await ledger.inbox(run)).toEqual([{ key: 'k1', command, at: 1_760_000_000_000 }])
    const next = stampFacts(run, [facts.cancel_requested], { afterSeq: 1 })
    await ledger.append(run, { expectedSeq: 1, epoch: 1 }, next, {
      durability: 'barrier',
      consumedInboxKeys: ['k1'],
    })
    expect(await ledgerChild(['put', path, 'k1']).ended()).toEqual([false])
    await ledger.close()
  })

  it('shut each other out where they may all write: whose run was taken over can append nothing', async () => {
    const path = temporaryFile()
    const ledger = await startedLedger(path, {})
    const other = sqliteLedger(path)
    expect(await other.acquire(run)).toEqual({ seq: 1, epoch: 2 })
    const late = stampFacts(run, [facts.tool_started], { afterSeq: 1 })
    const append = ledger.append(run, { expectedSeq: 1, epoch: 1 }, late, { durability: 'barrier' })
    await expect(append).rejects.toThrow(LedgerConflictError)
    await expect(append).rejects.toThrow(/epoch 2.*epoch 1/)
    expect(await Array.fromAsync(ledger.read(run))).toEqual(start)
    await other.close()
    await ledger.close()
  })
})

describe('a user who may not write', () => {
  // Root may write everywhere, so the child runs as another user then.
  const nobody = process.getuid?.() === 0 ? 65_534 : undefined

  // Windows knows neither these modes nor users by number.
  it.skipIf(process.platform === 'win32')(
    'reads a ledger at rest in a folder that cannot be written',
    async () => {
      const path = temporaryFile()
      await (await startedLedger(path)).close()
      chmodSync(path, 0o444)
      chmodSync(dirname(path), 0o555)
      expect(await ledgerChild(['read', path], { user: nobody }).ended()).toEqual([[...start], ['runs.db']])
      const [said] = await ledgerChild(['write', path], { user: nobody }).ended()
      expect(said).toMatch(/^LedgerUnavailableError: .*cannot be written/)
      chmodSync(dirname(path), 0o755)
      expect(readdirSync(dirname(path))).toEqual(['runs.db'])
    },
    60_000,
  )

  // Windows knows neither these modes nor users by number.
  it.skipIf(process.platform === 'win32')(
    'reads a ledger that cannot be written, in a folder that can',
    async () => {
      const path = temporaryFile()
      await (await startedLedger(path)).close()
      chmodSync(path, 0o444)
      chmodSync(dirname(path), 0o777)
      expect(await ledgerChild(['read', path], { user: nobody }).ended()).toEqual([[...start], ['runs.db']])
      const [said] = await ledgerChild(['write', path], { user: nobody }).ended()
      expect(said).toMatch(/^LedgerUnavailableError: .*cannot be written/)
    },
    60_000,
  )
})
