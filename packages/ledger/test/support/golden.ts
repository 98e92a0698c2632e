import { hash } from 'node:crypto'
import { join } from 'node:path'
import Database from 'better-sqlite3'
import { readLedgerStats, readRunSummaries } from '@tallystick/ledger'
import { projectionVersion } from '../../src/projection/projections.ts'
import type { Ledger, RunId, RunState } from '@tallystick/core'
import { readCalls, readMessages } from '@tallystick/core/internal'
import { evolve, foldVersion, serializeState } from '@tallystick/core/machine'
import { toCanonicalJson, type Json } from '@tallystick/core/vocabulary'

/** The format that is written today. */
export const newestFormat = 1

/** The files of one released format: a ledger, its export, and what its runs fold to. */
export interface GoldenFiles {
  readonly ledger: string
  readonly lines: string
  readonly states: string
  readonly versions: string
}

export function goldenFiles(format: number): GoldenFiles {
  const file = (suffix: string): string =>
    join(import.meta.dirname, '..', 'golden', `format-${format}.${suffix}`)
  return {
    ledger: file('sqlite'),
    lines: file('jsonl'),
    states: file('states.json'),
    versions: file('versions.json'),
  }
}

export interface GoldenState {
  readonly runId: RunId
  /** SHA-256 over the states right after each of its events, one after the other, in hex. */
  readonly digest: string
  /** The last of them, for people: what differs is found by comparing it. */
  readonly last: Json
}

/** Folds every run of a ledger, in the order in which they were made. */
export async function goldenStates(ledger: Ledger): Promise<readonly GoldenState[]> {
  const runs = await Array.fromAsync(ledger.runs(), ({ runId }) => runId)
  return await Promise.all(runs.toReversed().map((runId) => goldenState(ledger, runId)))
}

async function goldenState(ledger: Ledger, runId: RunId): Promise<GoldenState> {
  let state: RunState | undefined
  let digest = ''
  for await (const event of ledger.read(runId)) {
    state = evolve(state, event)
    digest = hash('sha256', digest + toCanonicalJson(plain(state)), 'hex')
  }
  if (state === undefined) throw new Error(`Run ${runId} has no events.`)
  return { runId, digest, last: plain(state) }
}

/** A state without what only makes it fast. */
function plain({ history, callLog, ...rest }: RunState): Json {
  return JSON.parse(
    JSON.stringify({ ...rest, history: readMessages(history), callLog: readCalls(callLog) }),
  ) as Json
}

/** What the versions of this release make of the golden ledger: SHA-256 in hex, over states and over projections. */
export interface GoldenVersions {
  readonly foldVersion: number
  readonly states: string
  readonly projectionVersion: string
  readonly projections: string
}

/** Folds and projects every run of a ledger that keeps projections. */
export async function goldenVersions(ledger: Ledger): Promise<GoldenVersions> {
  let states = ''
  for await (const { runId } of ledger.runs()) {
    let state: RunState | undefined
    for await (const event of ledger.read(runId)) {
      state = evolve(state, event)
      states = hash('sha256', states + toCanonicalJson(serializeState(state)), 'hex')
    }
  }
  const summaries = await Array.fromAsync(readRunSummaries(ledger, {}))
  const stats = await readLedgerStats(ledger, { since: 0, maxListed: 1_000 })
  const projections = hash('sha256', JSON.stringify([summaries, stats]), 'hex')
  return { foldVersion, states, projectionVersion, projections }
}

/** The versions that have to rise, since they stand for something else than they did before. */
export function staleVersions(before: GoldenVersions, now: GoldenVersions): readonly string[] {
  return [
    ...(before.states !== now.states && before.foldVersion === now.foldVersion
      ? ['foldVersion in packages/core/src/machine/state.ts']
      : []),
    ...(before.projections !== now.projections && before.projectionVersion === now.projectionVersion
      ? ['version in packages/ledger/src/projection/projections.ts']
      : []),
  ]
}

/** The tables and rows of a ledger in a file, without what differs each time that the same is recorded: salts, hashes, times. */
export function storedRows(path: string): string {
  const database = new Database(path, { readonly: true })
  try {
    const rows = (text: string): readonly unknown[] => database.prepare(text).raw().all()
    const tables = rows("select name from sqlite_schema where type = 'table' order by name").flat()
    return JSON.stringify([
      rows('select type, name, sql from sqlite_schema order by name'),
      tables.map((table) => [table, rows(`select count(*) from "${String(table)}"`)]),
      rows('select pos, run_id, seq, epoch, type, v, turn, tool_call_id, at, body from event order by pos'),
    ])
  } finally {
    database.close()
  }
}
