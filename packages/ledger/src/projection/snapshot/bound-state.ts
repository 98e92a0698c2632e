import { type Message, type RunId, type RunState } from '@tallystick/core'
import { messagesOf, openTurnCalls, stateFromJson, stateToJson } from '@tallystick/core/machine'
import { canonicalJson, parseToolCallId, type Json, type JsonObject } from '@tallystick/core/vocabulary'
import { digestOf } from '../../format/chain.ts'
import { snapshotVersion } from '../tables/projection-version.ts'
import { outlineFrom, type RunOutline } from './run-outline.ts'

/** What is known of a run after one of its events. */
export interface FoldedRun {
  readonly state: RunState
  readonly outline: RunOutline
}

/** A snapshot as a store keeps it: the state and the outline of a run after one of its events. */
export interface StoredSnapshot {
  readonly seq: number
  /** Canonical JSON of both. */
  readonly state: string
  /** The hash of that event: of another history it is another one. */
  readonly headHash: string
  /** Over all of this, the run and the code that folded it. */
  readonly seal: string
}

/** A history of which the first messages are those that the run began with: they are kept once, with its events. */
interface BegunHistory {
  readonly carried: number
  readonly messages: readonly Message[]
}

/** The state and the outline of a run that began with `carried`, as text. The same ones give the same text. */
export function snapshotText({ state, outline }: FoldedRun, carried: readonly Message[]): string {
  const json = { ...stateToJson(state), outline }
  const messages = messagesOf(state.history)
  const changed = carried.findIndex((message, index) => message !== messages[index])
  const shared = changed < 0 ? carried.length : changed
  if (shared === 0) return canonicalJson(json)
  const history = { carried: shared, messages: messages.slice(shared) }
  return canonicalJson({ ...json, history })
}

/** Binds the text of a snapshot to its run, its place and the code that made it. */
export function snapshotDigest(runId: RunId, { seq, state, headHash }: Omit<StoredSnapshot, 'seal'>): string {
  const of = canonicalJson({ runId, seq, headHash, reducer: snapshotVersion })
  return digestOf(`snapshot ${of}\n${state}`)
}

/** The state and the outline that a snapshot holds; `undefined` where it is not as it was written. */
export async function runOfSnapshot(
  runId: RunId,
  snapshot: StoredSnapshot,
  carried: () => Promise<readonly Message[]>,
): Promise<FoldedRun | undefined> {
  if (snapshotDigest(runId, snapshot) !== snapshot.seal) return undefined
  const { outline: written, ...json } = JSON.parse(snapshot.state) as JsonObject
  const outline = outlineFrom(written)
  const history = json['history'] as unknown as readonly Message[] | BegunHistory
  const messages =
    'carried' in history ? [...(await carried()).slice(0, history.carried), ...history.messages] : history
  const state = stateFromJson({ ...json, history: messages as unknown as Json })
  return outline && hasIds(runId, state) ? { state, outline } : undefined
}

/**
 * Snapshots are outside the chain, so any writer of the database may have made them: checks the ids that commands are
 * made of.
 */
function hasIds(runId: RunId, state: RunState): boolean {
  const calls = openTurnCalls(state).map(({ toolCallId }) => toolCallId)
  return state.runId === runId && calls.every((call) => parseToolCallId(call) !== undefined)
}
