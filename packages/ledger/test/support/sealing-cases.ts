import { LedgerUnavailableError } from '@tallystick/core'
import { exportEvents, foldTo, redact, verifyRun } from '@tallystick/ledger'
import { sqliteKeyring } from '@tallystick/ledger/sqlite'
import { expect } from 'vitest'
import { eventsOf, large, play, secret, storeVerdict, suspended, type RemovalBed } from './removal-bed.ts'
import { temporaryFile } from './temporary-folder.ts'

/** What sealing runs for their subjects promises, each case by its claim. */
export const sealingCases: Readonly<Record<string, (bed: RemovalBed) => Promise<void>>> = {
  async 'what is said in a run with a subject is read with the keys, and is nowhere in the store without'({
    open,
    holds,
  }) {
    const keys = sqliteKeyring(temporaryFile('keys.db'))
    const ledger = open({ keys })
    const runId = await play(ledger, { subject: 'customer 7', sessionId: 's' })
    // The session continues under the same key.
    const next = await play(ledger, { sessionId: 's' })
    const other = await play(ledger)
    expect(JSON.stringify(await eventsOf(ledger, runId))).toContain(secret)
    expect(JSON.stringify(await eventsOf(ledger, next))).toContain(large)
    expect(await verifyRun(ledger, runId)).not.toHaveProperty('missing')
    const exported = await Array.fromAsync(exportEvents(ledger, runId))
    await redact(ledger, other, 'all', { by: 'ada', reason: 'to see what is left' })
    await ledger.close()
    expect(await holds('secret')).toBe(false)

    const without = open()
    const masked = await eventsOf(without, runId)
    expect(masked.every(({ removed }) => removed?.kind === 'sealed')).toBe(true)
    expect((await foldTo(without, runId)).totals.turns).toBe(2)
    expect(await verifyRun(without, runId)).toMatchObject({
      ok: true,
      missing: [{ kind: 'sealed', events: masked.length }],
    })
    expect(await storeVerdict(without)).toMatchObject({ ok: true })
    const suspendedRun = await play(without, { approve: false, subject: 'customer 7' })
    expect((await eventsOf(without, suspendedRun))[0]).not.toHaveProperty('removed')
    await without.close()

    const again = open({ keys })
    expect(await Array.fromAsync(exportEvents(again, runId))).toEqual(exported)
    await again.close()
    keys.close()
  },

  async 'a subject whose key is destroyed is erased: the facts verify and fold, and nobody can continue with a run of theirs'({
    open,
  }) {
    const keys = sqliteKeyring(temporaryFile('keys.db'))
    const ledger = open({ keys })
    const ended = await play(ledger, { subject: 'customer 7' })
    const waiting = await play(ledger, { subject: 'customer 7', approve: false })
    const other = await play(ledger, { subject: 'customer 8' })
    const { runtime, run, pendingCall } = await suspended(ledger, waiting)
    expect(await keys.destroy('customer 7')).toHaveLength(1)
    expect(await keys.destroy('customer 7')).toEqual([])
    for (const runId of [ended, waiting]) {
      const events = await eventsOf(ledger, runId)
      expect(JSON.stringify(events)).not.toContain('secret')
      expect(events.map(({ removed }) => removed)).toEqual(events.map(() => ({ kind: 'erased' })))
      expect(await verifyRun(ledger, runId)).toMatchObject({
        ok: true,
        missing: [{ kind: 'erased', events: events.length }],
      })
    }
    expect((await foldTo(ledger, ended)).totals.usage).toMatchObject({ inputTokens: 240 })
    expect(JSON.stringify(await eventsOf(ledger, other))).toContain(secret)
    await run.approve(pendingCall, { by: 'me' })
    await expect(runtime.resume(waiting).result).rejects.toThrow(LedgerUnavailableError)
    await expect(runtime.resume(waiting).result).rejects.toThrow(/key was destroyed/)
    // The person comes back, under a new key.
    const back = await play(ledger, { subject: 'customer 7' })
    expect(JSON.stringify(await eventsOf(ledger, back))).toContain(secret)
    expect(await storeVerdict(ledger)).toMatchObject({ ok: true })
    await ledger.close()
    keys.close()
  },

  async 'an append whose acknowledgement was lost is recognised in a sealed run too'({ open }) {
    const keys = sqliteKeyring(temporaryFile('keys.db'))
    const ledger = open({ keys })
    const runId = await play(ledger, { subject: 'customer 7' })
    const events = await eventsOf(ledger, runId)
    const first = events.filter(({ epoch }) => epoch === 1)
    expect(first.length).toBeGreaterThan(3)
    const head = await ledger.append(runId, { expectedSeq: 0, epoch: 1 }, first, { durability: 'barrier' })
    expect(head).toEqual({ seq: first.length, epoch: 1 })
    expect(await eventsOf(ledger, runId)).toEqual(events)
    await ledger.close()
    keys.close()
  },
}
