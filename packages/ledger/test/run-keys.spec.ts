import { LedgerUnavailableError, type RunId, type RuntimeEvent } from '@tallystick/core'
import { everyFact, sampleRunId, stamped } from '@tallystick/core/testing'
import { describe, expect, it } from 'vitest'
import { RunKeys } from '../src/append/run-keys.ts'
import { storedBody } from '../src/content/event/stored-body.ts'
import { Sealer } from '../src/content/payload/encrypted-bytes.ts'
import type { Keyring, SubjectKey } from '../src/content/payload/keyring.ts'
import type { EventRow } from '../src/record/event-row.ts'

const runId = sampleRunId(1)
const key: SubjectKey = { id: 'k1', bytes: new Uint8Array(32).fill(7) }

function startOf(id: RunId, subject?: string): RuntimeEvent {
  const { subject: _subject, ...fact } = everyFact(id).run_started
  const [event] = stamped(id, [{ ...fact, ...(subject !== undefined && { subject }) }])
  return event as RuntimeEvent
}

/** The row of the first event of a run, as far as its key is read from it. */
function firstRow(sealer?: Sealer): EventRow {
  const { bytes: body } = storedBody(startOf(runId, 'ada'), sealer)
  return { type: 'run_started', first_seq: null, body } as unknown as EventRow
}

const later = stamped(runId, [everyFact(runId).usage_updated], { afterSeq: 1 })

/** The keys of runs, over a keyring with one key unless it is destroyed, and which runs and keys were asked for. */
function bed({
  row,
  isDestroyed = false,
  hasKeyring = true,
}: {
  row?: EventRow
  isDestroyed?: boolean
  hasKeyring?: boolean
}) {
  const asked: string[] = []
  const keyring: Keyring = {
    keyOf: async (subject) => (asked.push(`key of ${subject}`), key),
    key: async (id) => (asked.push(`key ${id}`), isDestroyed ? undefined : key.bytes),
    destroy: () => Promise.reject(new Error('not asked')),
  }
  const keys = new RunKeys(hasKeyring ? keyring : undefined, async (id) => (asked.push(id), row))
  return { keys, asked: () => asked.splice(0) }
}

const idOf = async (sealer: Promise<Sealer | undefined>): Promise<string | undefined> => (await sealer)?.id

describe('the key of a run', () => {
  it('is that of its subject from its first event on, and the store is not asked for it', async () => {
    const { keys, asked } = bed({})
    expect(await idOf(keys.sealerFor(runId, [startOf(runId, 'ada')]))).toBe('k1')
    expect(keys.isPlain(runId)).toBe(false)
    expect(await idOf(keys.sealerFor(runId, later))).toBe('k1')
    expect(asked()).toEqual(['key of ada', 'key k1'])
  })

  it.each([
    ['has no subject', undefined, true],
    ['has a subject, and the ledger no keys', 'ada', false],
  ])('is undefined where it %s, and nothing is asked', async (_what, subject, hasKeyring) => {
    const { keys, asked } = bed({ hasKeyring })
    expect(keys.isPlain(runId)).toBe(false)
    expect(await keys.sealerFor(runId, [startOf(runId, subject)])).toBeUndefined()
    expect(keys.isPlain(runId)).toBe(true)
    expect(await keys.sealerFor(runId, later)).toBeUndefined()
    expect(asked()).toEqual([])
  })

  it('of a run that continues is the one that its first event was sealed with, which is looked up once', async () => {
    const { keys, asked } = bed({ row: firstRow(new Sealer(key)) })
    expect(await idOf(keys.sealerFor(runId, later))).toBe('k1')
    expect(asked()).toEqual([runId, 'key k1'])
    expect(await idOf(keys.sealerFor(runId, []))).toBe('k1')
    expect(asked()).toEqual(['key k1'])
  })

  it.each<readonly [string, EventRow | undefined]>([
    ['was not sealed', firstRow()],
    ['is not there', undefined],
  ])('of a run that continues is undefined where its first event %s', async (_what, row) => {
    const { keys, asked } = bed({ ...(row && { row }) })
    expect(await keys.sealerFor(runId, later)).toBeUndefined()
    expect(keys.isPlain(runId)).toBe(true)
    expect(await keys.sealerFor(runId, later)).toBeUndefined()
    expect(asked()).toEqual([runId])
  })

  it.each([
    [
      'was destroyed',
      { isDestroyed: true },
      /^The content of run .* and that key was destroyed, so the run was erased/,
    ],
    [
      'is in a keyring that the ledger was opened without',
      { hasKeyring: false },
      /, and this ledger was opened without keys\. Open it/,
    ],
  ])('is missed where it %s, and nothing is written in the clear', async (_what, options, message) => {
    const { keys } = bed({ row: firstRow(new Sealer(key)), ...options })
    await expect(keys.sealerFor(runId, later)).rejects.toThrow(LedgerUnavailableError)
    await expect(keys.sealerFor(runId, later)).rejects.toThrow(message)
    expect(keys.isPlain(runId)).toBe(false)
  })

  it('is remembered for 4096 runs, those that were used last', async () => {
    const { keys, asked } = bed({ row: firstRow(new Sealer(key)) })
    const runs = Array.from({ length: 4_097 }, (_, index) => sampleRunId(index + 1))
    const [first, second, third] = runs as [RunId, RunId, RunId]
    for (const id of runs.slice(0, -1)) await keys.sealerFor(id, [])
    asked()
    // All of them are known. The first is the most recently used one now.
    await keys.sealerFor(first, [])
    expect(asked()).toEqual(['key k1'])
    await keys.sealerFor(runs.at(-1) as RunId, [])
    expect(asked()).toEqual([runs.at(-1), 'key k1'])
    for (const id of [first, third]) await keys.sealerFor(id, [])
    expect(asked()).toEqual(['key k1', 'key k1'])
    await keys.sealerFor(second, [])
    expect(asked()).toEqual([second, 'key k1'])
  })
})
