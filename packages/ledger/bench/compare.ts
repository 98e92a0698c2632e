// How fast a ledger is against its own database used by hand: the same rows in the same tables with the same
// durability, without hashing, checks and triggers. Both take turns within one run: the ratio is what counts.
import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type RunState, type RuntimeEvent } from '@tallystick/core'
import { evolve } from '@tallystick/core/machine'
import { commitmentOf, genesisHash, linkHash } from '../src/record/chain.ts'
import { foldTo } from '../src/projection/snapshot/fold-to.ts'
import { sqliteLedger } from '../src/sqlite/sqlite-ledger.ts'
import { verifyRun } from '../src/verify/verify.ts'
import { asRun, groupsOf, recordedEvents, rowsOf } from './events.ts'
import { postgresCompared } from './postgres.ts'
import { sqliteCompared } from './sqlite.ts'
import type { Compared } from './store.ts'

const rounds = Number(process.env['BENCH_ROUNDS'] ?? 7)
const barrier = { durability: 'barrier' } as const
const recorded = await recordedEvents(8_192)
let runs = 0

type Work = () => unknown

/** Events a second of each side, the best of all rounds: what else the machine does can only slow a round. */
async function race(events: number, sides: () => readonly [Work, Work]): Promise<readonly [number, number]> {
  const best: [number, number] = [0, 0]
  for (let round = -1; round < rounds; round++) {
    const works = sides()
    for (const side of round % 2 === 0 ? ([0, 1] as const) : ([1, 0] as const)) {
      const begun = performance.now()
      await works[side]()
      const speed = events / ((performance.now() - begun) / 1000)
      if (round >= 0) best[side] = Math.max(best[side], speed)
    }
  }
  return best
}

function report(what: string, [ours, raw]: readonly [number, number], against: string): void {
  const speeds = [ours, raw].map((speed) => Math.round(speed).toLocaleString('en').padStart(11))
  console.log(`${what.padEnd(34)} ${speeds.join(' ')}   ${(ours / raw).toFixed(2)}  of ${against}`)
}

/** Appends a fresh run in groups of a size. */
function appending({ ledger, raw }: Compared, count: number, size: number): readonly [Work, Work] {
  const events = asRun(recorded, ++runs).slice(0, count)
  const groups = groupsOf(events, size)
  const rows = groupsOf(rowsOf(events), size)
  return [
    async () => {
      for (const group of groups) {
        const [first] = group as readonly [RuntimeEvent]
        await ledger.append(first.runId, { expectedSeq: first.seq - 1, epoch: 1 }, group, barrier)
      }
    },
    async () => {
      for (const group of rows) await raw.append(group)
    },
  ]
}

/** As many runs as are appended to at once. */
const runsAtOnce = 64

/** Appends to many runs at once, an event of each at a time, as a server does. By hand: each in a commit of its own. */
function appendingAtOnce({ ledger, raw }: Compared, eventsOfRun: number): readonly [Work, Work] {
  const all = Array.from({ length: runsAtOnce }, () => asRun(recorded, ++runs).slice(0, eventsOfRun))
  const rowsOfAll = all.map(rowsOf)
  return [
    async () => {
      const appendRun = async (events: readonly RuntimeEvent[]): Promise<void> => {
        for (const event of events) {
          await ledger.append(event.runId, { expectedSeq: event.seq - 1, epoch: 1 }, [event], barrier)
        }
      }
      await Promise.all(all.map(appendRun))
    },
    async () => {
      for (let index = 0; index < eventsOfRun; index++) {
        for (const each of rowsOfAll) await raw.append(each.slice(index, index + 1))
      }
    },
  ]
}

async function compare(compared: Compared): Promise<void> {
  const { name, ledger, raw } = compared
  const against = `raw ${name}`
  report(`${name}: append, one at a time`, await race(256, () => appending(compared, 256, 1)), against)
  report(`${name}: append, in groups of 64`, await race(8_192, () => appending(compared, 8_192, 64)), against)
  report(
    `${name}: append, ${runsAtOnce} runs at once`,
    await race(runsAtOnce * 8, () => appendingAtOnce(compared, 8)),
    `${against}, a commit each`,
  )
  const [append, appendRaw] = appending(compared, recorded.length, 1_024)
  await append()
  await appendRaw()
  const { runId } = asRun(recorded, runs)[0] as RuntimeEvent
  const read = async (): Promise<void> => {
    let events = 0
    for await (const { seq } of ledger.read(runId)) events = seq
    if (events !== recorded.length) throw new Error('The run was not read whole.')
  }
  const byHand = (): unknown => raw.read(runId)
  report(`${name}: read a run`, await race(recorded.length, () => [read, byHand]), `${against}, rows parsed`)
  const fold = (): unknown => foldTo(ledger, runId)
  report(
    `${name}: read and fold a run`,
    await race(recorded.length, () => [fold, byHand]),
    `${against}, rows parsed`,
  )
  const verify = async (): Promise<void> => {
    if (!(await verifyRun(ledger, runId)).ok) throw new Error('The run is not sound.')
  }
  report(`${name}: verify a run`, await race(recorded.length, () => [verify, hashAlone]), 'its hashing alone')
  const readAndHash = async (): Promise<void> => {
    await raw.read(runId)
    hashAlone()
  }
  report(
    `${name}: verify a run`,
    await race(recorded.length, () => [verify, readAndHash]),
    'rows parsed by hand, and hashing',
  )
}

const rows = rowsOf(recorded)

/** What verifying cannot do without. */
function hashAlone(): void {
  let previous = genesisHash
  for (const { envelope, salt, body } of rows)
    previous = linkHash(previous, envelope, commitmentOf(salt, body))
}

function foldAlone(): void {
  let state: RunState | undefined
  for (const event of recorded) state = evolve(state, event)
}

/** So small that what is no longer used has to go: what is left is what going through a ledger needs. */
const smallHeap = ['--max-old-space-size=64', '--max-semi-space-size=1']

/** The most memory that going through ledgers of two sizes takes. */
async function measureMemory(): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'tallystick-bench-'))
  const found: { events: number; maxBytes: number }[] = []
  for (const runsOfLedger of [2, 16, 64]) {
    const path = join(folder, `${runsOfLedger}.db`)
    const ledger = sqliteLedger(path)
    for (let ordinal = 1; ordinal <= runsOfLedger; ordinal++) {
      const events = asRun(recorded, ordinal)
      for (const group of groupsOf(events, 1_024)) {
        const [first] = group as readonly [RuntimeEvent]
        await ledger.append(first.runId, { expectedSeq: first.seq - 1, epoch: 1 }, group, {
          durability: 'lazy',
        })
      }
    }
    await ledger.close()
    const { stdout } = spawnSync(
      process.execPath,
      [...smallHeap, join(import.meta.dirname, 'memory.ts'), path],
      {
        encoding: 'utf8',
      },
    )
    found.push(JSON.parse(stdout) as (typeof found)[number])
  }
  rmSync(folder, { recursive: true })
  for (const { events, maxBytes } of found) {
    const shown = `${events.toLocaleString('en')} events`.padStart(16)
    console.log(`SQLite: find and verify ${shown} in at most ${Math.round(maxBytes / 2 ** 20)} MiB`)
  }
}

console.log(`Events a second, the best of ${rounds} rounds:`)
console.log(`${''.padEnd(34)} ${'ledger'.padStart(11)} ${'by hand'.padStart(11)}   ratio`)
const [folded, hashed] = await race(recorded.length, () => [foldAlone, hashAlone])
console.log(
  `fold alone ${Math.round(folded).toLocaleString('en')}, hashing alone ${Math.round(hashed).toLocaleString('en')}`,
)
for (const open of [sqliteCompared, postgresCompared]) {
  const compared = await open()
  if (compared === undefined) continue
  await compare(compared)
  await compared.close()
}
await measureMemory()
