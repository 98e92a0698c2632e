import { copyFileSync, createReadStream, readFileSync } from 'node:fs'
import { memoryLedger, type Ledger, type RuntimeEvent } from '@tallystick/core'
import { eventTypes } from '@tallystick/core/vocabulary'
import { exportEvents, importEvents, splitLines, verifyLedger } from '@tallystick/ledger'
import { sqliteLedger } from '@tallystick/ledger/sqlite'
import { describe, expect, it, onTestFinished } from 'vitest'
import {
  goldenFiles,
  goldenStates,
  goldenVersions,
  newestFormat,
  staleVersions,
  storedRows,
  type GoldenState,
  type GoldenVersions,
} from './support/golden.ts'
import { recordGoldenRuns } from './support/golden-runs.ts'
import { temporaryFile } from './support/temporary-folder.ts'

const formats = Array.from({ length: newestFormat }, (_, index) => index + 1)

/**
 * Held against every release from here on. Where this fails for a format that was released, ledgers of its users fold to
 * something else than they did: an upcaster is missing, or a fold has changed its mind about the past. How to write the
 * files of an unreleased format again: `support/write-golden.ts`.
 */
describe.each(formats)('the golden ledger of format %d', (format) => {
  const files = goldenFiles(format)
  const states = JSON.parse(readFileSync(files.states, 'utf8')) as readonly GoldenState[]
  const lines = readFileSync(files.lines, 'utf8').trimEnd().split('\n')

  /** A copy, since opening a ledger may bring its schema up to date. */
  function open(): Ledger {
    const path = temporaryFile()
    copyFileSync(files.ledger, path)
    const ledger = sqliteLedger(path)
    onTestFinished(() => ledger.close())
    return ledger
  }

  it('folds every run to the states of then, at every event', async () => {
    const folded = await goldenStates(open())
    expect(folded.map(({ last }) => last)).toEqual(states.map(({ last }) => last))
    expect(folded.map(({ runId, digest }) => [runId, digest])).toEqual(
      states.map(({ runId, digest }) => [runId, digest]),
    )
  })

  it('has versions that rise with what they stand for', async () => {
    const before = JSON.parse(readFileSync(files.versions, 'utf8')) as GoldenVersions
    const now = await goldenVersions(open())
    expect(staleVersions(before, now)).toEqual([])
    expect(now).toEqual(before)
    const others = { ...now, states: 'others', projections: 'others' }
    expect(staleVersions(before, others)).toHaveLength(2)
    expect(staleVersions(before, { ...others, foldVersion: 0, projectionVersion: '0' })).toEqual([])
  })

  it('verifies, and is exported byte for byte as it was then', async () => {
    const ledger = open()
    expect(await Array.fromAsync(verifyLedger(ledger), ({ ok }) => ok)).toEqual([
      ...states.map(() => true),
      true,
    ])
    expect(await Array.fromAsync(exportEvents(ledger))).toEqual(lines)
  })

  it('is imported from its export, and folds to the same', async () => {
    const ledger = memoryLedger()
    const report = await importEvents(ledger, splitLines(createReadStream(files.lines)))
    expect(report).toEqual({ runs: states.length, events: lines.length, present: 0 })
    expect(await goldenStates(ledger)).toEqual(states)
  })
})

describe('the golden runs', () => {
  it('tell of everything that a ledger can tell of', () => {
    const lines = readFileSync(goldenFiles(newestFormat).lines, 'utf8').trimEnd().split('\n')
    const events = lines.map((line) => JSON.parse(line) as RuntimeEvent)
    expect([...new Set(events.map(({ type }) => type))].toSorted()).toEqual(eventTypes.toSorted())
    expect(Math.max(...events.map(({ epoch }) => epoch))).toBeGreaterThan(1)
  })

  it('are the same at every time', async () => {
    const [one, two] = [memoryLedger(), memoryLedger()]
    await recordGoldenRuns(one)
    await recordGoldenRuns(two)
    expect(await Array.fromAsync(exportEvents(two))).toEqual(await Array.fromAsync(exportEvents(one)))
  })

  it('are stored the same at every time, but for salts and hashes, so that a ledger that would be equal is not written', async () => {
    const record = async (path: string): Promise<string> => {
      const ledger = sqliteLedger(path)
      await recordGoldenRuns(ledger)
      await ledger.close()
      return storedRows(path)
    }
    const [one, two] = [temporaryFile(), temporaryFile()]
    expect(await record(one)).toBe(await record(two))
    expect(readFileSync(one).equals(readFileSync(two))).toBe(false)
  })
})
