import { hash } from 'node:crypto'
import { join } from 'node:path'
import {
  callsOf,
  canonicalJson,
  evolve,
  messagesOf,
  type Json,
  type Ledger,
  type RunId,
  type RunState,
} from '@tallystick/core'

/** The files of one released format: a ledger, its export, and what its runs fold to. */
export interface GoldenFiles {
  readonly ledger: string
  readonly lines: string
  readonly states: string
}

/** Where the files of a format stand. */
export function goldenFiles(format: number): GoldenFiles {
  const file = (suffix: string): string =>
    join(import.meta.dirname, '..', 'golden', `format-${format}.${suffix}`)
  return { ledger: file('sqlite'), lines: file('jsonl'), states: file('states.json') }
}

/** What a run folds to. */
export interface GoldenState {
  readonly runId: RunId
  /** SHA-256 over the states right behind each of its events, one after the other, in hex. */
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
    digest = hash('sha256', digest + canonicalJson(plain(state)), 'hex')
  }
  if (state === undefined) throw new Error(`Run ${runId} has no events.`)
  return { runId, digest, last: plain(state) }
}

/** A state without what only makes it fast. */
function plain({ history, callLog, ...rest }: RunState): Json {
  return JSON.parse(
    JSON.stringify({ ...rest, history: messagesOf(history), callLog: callsOf(callLog) }),
  ) as Json
}
