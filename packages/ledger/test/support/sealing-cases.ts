import { LedgerConflictError, LedgerUnavailableError, type Ledger, type RuntimeEvent } from '@tallystick/core'
import { sampleFacts, sampleRunId, stampFacts } from '@tallystick/testkit'
import type { FactOf } from '@tallystick/core/vocabulary'
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

  async 'appends begun in one go are carried out in their order and sealed, however long the key of the first takes'({
    open,
    holds,
  }) {
    const kept = sqliteKeyring(temporaryFile('keys.db'))
    const asked = Promise.withResolvers<void>()
    const keyOf = async (subject: string) => (await asked.promise, await kept.keyOf(subject))
    const ledger = open({ keys: { keyOf, key: (id) => kept.key(id), destroy: (id) => kept.destroy(id) } })
    const runId = sampleRunId(1)
    const [start, ...said] = stampFacts(runId, [
      { ...sampleFacts(runId).run_started, subject: 'customer 7' },
      ...['a', 'b'].map((text) => ({
        ...sampleFacts(runId).assistant_text_delta,
        text: `${secret} ${text}`,
      })),
    ]) as [RuntimeEvent, ...RuntimeEvent[]]
    const appends = [start, ...said].map((event) =>
      ledger.append(runId, { expectedSeq: event.seq - 1, epoch: 1 }, [event], { durability: 'lazy' }),
    )
    // Time enough for the second append to find out that the store knows no first event of the run.
    await ledger.head(runId)
    asked.resolve()
    expect((await Promise.all(appends)).map(({ seq }) => seq)).toEqual([1, 2, 3])
    await ledger.close()
    expect(await holds('secret')).toBe(false)
    kept.close()
  },

  async 'a run that another process began with a subject is sealed, also where this one tried to begin it without'({
    open,
    holds,
  }) {
    const keys = sqliteKeyring(temporaryFile('keys.db'))
    const [ledger, other] = [open({ keys }), open({ keys })]
    const runId = sampleRunId(1)
    const { subject: _subject, ...plain } = sampleFacts(runId).run_started
    const begin = (by: Ledger, start: FactOf<'run_started'>) =>
      by.append(runId, { expectedSeq: 0, epoch: 1 }, stampFacts(runId, [start]), { durability: 'barrier' })
    await begin(other, { ...plain, subject: 'customer 7' })
    await expect(begin(ledger, plain)).rejects.toThrow(LedgerConflictError)
    const said = { ...sampleFacts(runId).assistant_text_delta, text: secret }
    const next = stampFacts(runId, [said], { afterSeq: 1 })
    await ledger.append(runId, { expectedSeq: 1, epoch: 1 }, next, { durability: 'barrier' })
    await Promise.all([ledger.close(), other.close()])
    expect(await holds('secret')).toBe(false)
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
