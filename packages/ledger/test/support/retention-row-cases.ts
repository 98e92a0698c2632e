import type { Ledger } from '@tallystick/core'
import type { EventType } from '@tallystick/core/vocabulary'
import { applyRetention } from '@tallystick/ledger'
import { expect } from 'vitest'
import { deltaTypes } from '../../src/removal/content-types.ts'
import { removableStoreOf } from '../../src/removal/removable-store.ts'
import { driveLookingRun } from './looking-run.ts'
import type { SharedRowBed } from './shared-row-cases.ts'

/** A store of its own for a test. */
export interface RetentionRowBed extends Pick<SharedRowBed, 'open' | 'tamper'> {
  /** Bytes in the SQL of the store, from hex. */
  readonly bytes: (hex: string) => string
}

const later = 10 ** 15

/** The rows that are read for some types, each by the number of its last event. */
async function rowsRead(ledger: Ledger, types: readonly EventType[]): Promise<readonly number[]> {
  const asked = { types, before: later, afterPos: 0, limit: 100 }
  return (await removableStoreOf(ledger)?.payloads(asked))?.items.map(({ seq }) => seq) ?? []
}

/** A ledger of one run that has ended. */
async function looked(bed: RetentionRowBed): Promise<Ledger> {
  const ledger = bed.open()
  await driveLookingRun({ ledger, turns: 4, seed: 5, pause: () => Promise.resolve() })
  return ledger
}

const newLine = '0a'
const hexOf = (text: string): string => Buffer.from(text).toString('hex')

/** Bodies that are not as rows of several events are written, in hex. */
const damagedBodies: Readonly<Record<string, string>> = {
  'no JSON': hexOf('{') + newLine,
  'JSON without heads': `${hexOf('{"segments":[')}${newLine}${hexOf('1')}${newLine}${hexOf(']}')}`,
  'JSON whose heads are no list': `${hexOf('{"heads":{"0":"tool_result"},"segments":[')}${newLine}${hexOf(']}')}`,
  'no text': `${hexOf('{"heads":["tool_result')}ff00${hexOf('"],"segments":[')}${newLine}${hexOf(']}')}`,
}

/** A ledger whose last row of several events has another body is refused, though that names no type that is due. */
async function refused(bed: RetentionRowBed, body: string): Promise<void> {
  const ledger = await looked(bed)
  const bytes = bed.bytes(body)
  await bed.tamper(
    `update @payload set body = ${bytes} where pos = (select max(pos) from @event where type = 'several')`,
  )
  expect(await rowsRead(ledger, ['assistant_reasoning_delta'])).toHaveLength(1)
  await expect(applyRetention(ledger, { deltasMs: 0 }, { now: later })).rejects.toThrow(/damaged/i)
}

/** Which rows a rule of retention reads, on every store, by claim. */
export const retentionRowCases: Readonly<Record<string, (bed: RetentionRowBed) => Promise<void>>> = {
  async 'rows of several events are read only for the types that they hold, and only as long as those are there'(
    bed,
  ) {
    const ledger = await looked(bed)
    const everyDelta = await rowsRead(ledger, deltaTypes)
    expect(everyDelta).toHaveLength(4)
    expect(await rowsRead(ledger, ['assistant_reasoning_delta'])).toEqual([])
    const results = await rowsRead(ledger, ['tool_result'])
    expect(results).toHaveLength(3)
    const report = await applyRetention(ledger, { deltasMs: 0 }, { now: later })
    expect(report.deltas).toBe(7)
    expect(await rowsRead(ledger, deltaTypes)).toEqual([])
    expect(await rowsRead(ledger, ['tool_result'])).toEqual(results)
    expect((await applyRetention(ledger, { deltasMs: 0 }, { now: later })).deltas).toBe(0)
  },
  ...Object.fromEntries(
    Object.entries(damagedBodies).map(([what, body]) => [
      `a row whose body is ${what} is read, and the ledger is said to be damaged`,
      (bed: RetentionRowBed) => refused(bed, body),
    ]),
  ),
}
