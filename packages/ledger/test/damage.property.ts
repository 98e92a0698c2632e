import { isDeepStrictEqual } from 'node:util'
import { readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs'
import {
  createRuntime,
  defineAgent,
  type Ledger,
  LedgerDamagedError,
  TallystickError,
  UnknownEventError,
  type RunId,
  type RuntimeEvent,
} from '@tallystick/core'
import { exportEvents, foldTo, readRunSummaries, redact, verifyLedger } from '@tallystick/ledger'
import { sqliteLedger } from '@tallystick/ledger/sqlite'
import { scriptedModel } from '@tallystick/testkit'
import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { tries } from '../../../scripts/testing/effort.ts'
import { findUnclear, mutatedBytes } from '../../../scripts/testing/mutated.ts'
import { toLedgerError as toPostgresError } from '../src/postgres/connections.ts'
import { toLedgerError as toSqliteError } from '../src/sqlite/open-database.ts'
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

  it('refuses each use of it with what is wrong, whatever is in it', async () => {
    const sound = await soundLedger()
    const [runId] = sound.runIds
    const uses: readonly ((ledger: Ledger) => Promise<unknown>)[] = [
      (ledger) => Array.fromAsync(ledger.runs()),
      (ledger) => Array.fromAsync(ledger.read(runId as RunId)),
      (ledger) => Array.fromAsync(ledger.tail()),
      (ledger) => Array.fromAsync(ledger.due({ before: 8e15 })),
      (ledger) => Array.fromAsync(verifyLedger(ledger)),
      (ledger) => Array.fromAsync(readRunSummaries(ledger)),
      (ledger) => Array.fromAsync(exportEvents(ledger)),
      (ledger) => foldTo(ledger, runId as RunId),
      (ledger) => ledger.acquire(runId as RunId),
      (ledger) => redact(ledger, runId as RunId, 'all', { by: 'ada', reason: 'asked to' }),
    ]
    const changed = fc.oneof(
      { weight: 4, arbitrary: mutatedBytes([sound.bytes], { keepsPlaces: true }) },
      mutatedBytes([sound.bytes]),
    )
    await fc.assert(
      fc.asyncProperty(changed, fc.boolean(), async (bytes, readOnly) => {
        rmSync(`${sound.path}-wal`, { force: true })
        rmSync(`${sound.path}-shm`, { force: true })
        writeFileSync(sound.path, bytes)
        const unclear: string[] = []
        const report = (error: unknown): void => void unclear.push(...[findUnclear(error) ?? []].flat())
        const attempt = async (use: () => unknown): Promise<void> => {
          try {
            await use()
          } catch (error) {
            report(error)
          }
        }
        let ledger: Ledger | undefined
        await attempt(() => (ledger = sqliteLedger(sound.path, { readOnly })))
        if (ledger) {
          const open = ledger
          for (const use of uses) await attempt(() => use(open))
          const agent = defineAgent({ name: 'a', instructions: '', model: scriptedModel([{ text: 'Hi.' }]) })
          const runtime = createRuntime({ ledger: open, agents: [agent], host: { report } })
          await attempt(() => runtime.run(agent, 'Go.', { sessionId: 's' }).result)
          await attempt(() => runtime.resume(runId as RunId).result)
          await attempt(() => open.close())
        }
        expect(unclear).toEqual([])
      }),
      { numRuns: tries(400) },
    )
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
    ['of a type of a newer release', `type = 'run_dreamed'`, UnknownEventError],
    ['without a field of its type', `body = '{}'`, LedgerDamagedError],
  ] as const)('removes no content of an event %s', async (_what, change, error) => {
    const sound = await soundLedger()
    const runId = sound.runIds[0] as RunId
    tamper(sound.path, (database) => {
      database.prepare(`update event set ${change} where run_id = ? and seq = 3`).run(runId)
    })
    await using ledger = sqliteLedger(sound.path)
    await expect(redact(ledger, runId, 'all', { by: 'ada', reason: 'asked to' })).rejects.toThrow(error)
  })

  it.each([
    ['SQLite', toSqliteError],
    ['Postgres', toPostgresError],
  ])('calls a fault while a row of %s is read a damaged row', (_store, convert) => {
    const error = convert(new TypeError("Cannot read properties of null (reading 'length')"), 'runs.db')
    expect(error).toBeInstanceOf(LedgerDamagedError)
    expect(findUnclear(error)).toBe(undefined)
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
