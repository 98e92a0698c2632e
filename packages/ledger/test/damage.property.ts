import { isDeepStrictEqual } from 'node:util'
import { readFileSync, truncateSync, writeFileSync } from 'node:fs'
import { LedgerDamagedError, TallystickError, type RunId, type RuntimeEvent } from '@tallystick/core'
import { foldTo, verifyLedger } from '@tallystick/ledger'
import { sqliteLedger } from '@tallystick/ledger/sqlite'
import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { tries } from '../../../scripts/testing/effort.ts'
import { tamper } from './support/raw-database.ts'
import { recordRun } from './support/record-run.ts'
import { emptyLedgerFile } from './support/temporary-folder.ts'

interface Sound {
  readonly path: string
  readonly bytes: Buffer
  readonly runIds: readonly RunId[]
  readonly events: readonly (readonly RuntimeEvent[])[]
}

async function soundLedger(): Promise<Sound> {
  const path = emptyLedgerFile()
  const ledger = sqliteLedger(path)
  const runIds = [await recordRun(ledger, 1), await recordRun(ledger, 2)]
  const events = await Promise.all(runIds.map((runId) => Array.fromAsync(ledger.read(runId))))
  await ledger.close()
  return { path, bytes: readFileSync(path), runIds, events }
}

/** What becomes of a file when it is opened, verified and read. The last two must never be. */
type Outcome = 'refused' | 'found' | 'unharmed' | 'changed unseen' | 'refused without a reason'

async function outcomeOf({ path, runIds, events }: Sound): Promise<Outcome> {
  let ledger
  try {
    ledger = sqliteLedger(path, { readOnly: true })
  } catch (error) {
    return error instanceof TallystickError ? 'refused' : 'refused without a reason'
  }
  const store = (await Array.fromAsync(verifyLedger(ledger))).at(-1)
  const read = store?.ok
    ? await Promise.all(runIds.map((runId) => Array.fromAsync(ledger.read(runId))))
    : undefined
  await ledger.close()
  if (read === undefined) return 'found'
  return isDeepStrictEqual(read, events) ? 'unharmed' : 'changed unseen'
}

describe('a ledger file whose bytes have changed', () => {
  it('is refused, or found broken, or says what it said before, whichever bit flips', async () => {
    const sound = await soundLedger()
    const outcomes = new Set<Outcome>()
    const flip = fc.record({ at: fc.nat(sound.bytes.length - 1), bit: fc.nat(7) })
    await fc.assert(
      fc.asyncProperty(flip, async ({ at, bit }) => {
        const bytes = Buffer.from(sound.bytes)
        bytes[at] = (bytes[at] ?? 0) ^ (1 << bit)
        writeFileSync(sound.path, bytes)
        const outcome = await outcomeOf(sound)
        outcomes.add(outcome)
        expect(outcome).toMatch(/^(refused|found|unharmed)$/)
      }),
      { numRuns: tries(150) },
    )
    expect(outcomes).toContain('found')
  })

  /** Writes another text over each copy in turn. Pages keep copies of what they held before; those mean nothing. */
  async function overwriting(sound: Sound, text: string, other: string): Promise<readonly string[]> {
    expect(other).toHaveLength(text.length)
    const outcomes: string[] = []
    for (let at = sound.bytes.indexOf(text); at !== -1; at = sound.bytes.indexOf(text, at + 1)) {
      const bytes = Buffer.from(sound.bytes)
      bytes.write(other, at)
      writeFileSync(sound.path, bytes)
      outcomes.push(await outcomeOf(sound))
    }
    return outcomes.filter((outcome) => outcome === 'found')
  }

  it('is found broken wherever a stored body changes', async () => {
    const sound = await soundLedger()
    expect(await overwriting(sound, 'How warm is it', 'How cold is it')).toHaveLength(2)
    expect(await overwriting(sound, '"outcome":"success"', '"outcome":"denied!"')).toHaveLength(4)
  })

  it('is refused or found broken wherever it is cut off', async () => {
    const sound = await soundLedger()
    await fc.assert(
      fc.asyncProperty(fc.integer({ min: 1, max: sound.bytes.length - 1 }), async (length) => {
        writeFileSync(sound.path, sound.bytes)
        truncateSync(sound.path, length)
        expect(await outcomeOf(sound)).toMatch(/^(refused|found)$/)
      }),
      { numRuns: tries(40) },
    )
  })

  it('hands out nothing that was changed: reading stops at the place', async () => {
    const sound = await soundLedger()
    const [runId, events] = [sound.runIds[0] as RunId, sound.events[0] ?? []]
    const result = events.findIndex(({ type }) => type === 'tool_result') + 1
    const changed = result - 1
    tamper(sound.path, (database) => {
      database.prepare(`update event set body = '{}' where run_id = ? and seq = ?`).run(runId, result)
    })
    const ledger = sqliteLedger(sound.path, { readOnly: true })
    const read: RuntimeEvent[] = []
    const reading = async (): Promise<void> => {
      for await (const event of ledger.read(runId)) read.push(event)
    }
    await expect(reading()).rejects.toThrow(LedgerDamagedError)
    expect(read).toEqual(events.slice(0, changed))
    await expect(Array.fromAsync(ledger.read(runId, { fromSeq: result }))).rejects.toThrow(
      `Run ${runId} is damaged at seq ${result}: its hash is not what was written.`,
    )
    expect(await Array.fromAsync(ledger.read(runId, { fromSeq: result + 1 }))).toEqual(events.slice(result))
    await expect(foldTo(ledger, runId)).rejects.toThrow(LedgerDamagedError)
    await ledger.close()
  })

  it.each([
    ['removed', 'delete from event where run_id = ? and seq = ?'],
    ['cut off with all that followed', 'delete from event where run_id = ? and seq >= ?'],
  ])('hands out nothing after an event that was %s', async (_how, statement) => {
    const sound = await soundLedger()
    const [runId, events] = [sound.runIds[0] as RunId, sound.events[0] ?? []]
    const first = 5
    const last = first
    tamper(sound.path, (database) => database.prepare(statement).run(runId, last))
    const ledger = sqliteLedger(sound.path, { readOnly: true })
    const read: RuntimeEvent[] = []
    const reading = async (): Promise<void> => {
      for await (const event of ledger.read(runId)) read.push(event)
    }
    await expect(reading()).rejects.toThrow(`Run ${runId} is damaged at seq ${first}: the event is missing.`)
    expect(read).toEqual(events.slice(0, first - 1))
    await expect(Array.fromAsync(ledger.read(runId, { fromSeq: last + 1 }))).rejects.toThrow(
      LedgerDamagedError,
    )
    expect(await Array.fromAsync(ledger.read(runId, { toSeq: first - 1 }))).toEqual(
      events.slice(0, first - 1),
    )
    await ledger.close()
  })
})
