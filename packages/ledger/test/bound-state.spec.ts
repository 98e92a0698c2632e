import { memoryLedger, type Message, type RunId, type RunState } from '@tallystick/core'
import { readMessages } from '@tallystick/core/internal'
import { evolve, openTurnCalls, deserializeState, serializeState } from '@tallystick/core/machine'
import type { Json } from '@tallystick/core/vocabulary'
import { sampleMessage, sampleRunId } from '@tallystick/testkit'
import { describe, expect, it } from 'vitest'
import {
  decodeSnapshot,
  encodeSnapshot,
  sealSnapshot,
  type StoredSnapshot,
} from '../src/projection/snapshots.ts'
import { recordRun } from './support/record-run.ts'

/** The state of a recorded run while its tools run, and a snapshot of it. */
async function executing() {
  const ledger = memoryLedger()
  const runId = await recordRun(ledger)
  let state: RunState | undefined
  for await (const event of ledger.read(runId)) {
    state = evolve(state, event)
    if (event.type === 'tool_started') break
  }
  if (state === undefined) throw new Error('The run has no events.')
  return { runId, state, snapshot: sealed(runId, encodeSnapshot(state, [])) }
}

/** A snapshot as a writer of the database can forge it, with a seal that fits. */
function sealed(runId: RunId, state: string): StoredSnapshot {
  const bare = { seq: 9, state, headHash: 'a'.repeat(43) }
  return { ...bare, seal: sealSnapshot(runId, bare) }
}

const nothing = async (): Promise<readonly Message[]> => []

describe('a snapshot', () => {
  it('holds the state that it was made of, with the calls of its turn', async () => {
    const { runId, state, snapshot } = await executing()
    expect(openTurnCalls(state).length).toBeGreaterThan(0)
    expect(await decodeSnapshot(runId, snapshot, nothing)).toEqual(state)
  })

  it('gives no state where a character of it, its place or its run has changed', async () => {
    const { runId, snapshot } = await executing()
    const changed = snapshot.state.replace('"', "'")
    for (const other of [
      { ...snapshot, state: changed },
      { ...snapshot, seq: 10 },
      { ...snapshot, headHash: 'b'.repeat(43) },
      { ...snapshot, seal: 'c'.repeat(43) },
    ])
      expect(await decodeSnapshot(runId, other, nothing)).toBeUndefined()
    expect(await decodeSnapshot(sampleRunId(9), snapshot, nothing)).toBeUndefined()
  })

  it('gives no state where it names another run, or a call by what is not an id, under a seal that fits', async () => {
    const { runId, state, snapshot } = await executing()
    const text = snapshot.state
    const forged = (from: string, to: string): StoredSnapshot => sealed(runId, text.replaceAll(from, to))
    const [call] = openTurnCalls(state)
    expect(await decodeSnapshot(runId, forged('', ''), nothing)).toEqual(state)
    expect(await decodeSnapshot(runId, forged(runId, sampleRunId(9)), nothing)).toBeUndefined()
    expect(await decodeSnapshot(runId, forged(call?.toolCallId ?? '', '$(touch x)'), nothing)).toBeUndefined()
  })

  it('keeps messages that the run began with by their number, as far as they are the same', async () => {
    const { runId, state } = await executing()
    const carried = [sampleMessage('a'), sampleMessage('b')] as const
    const messages = [...carried, sampleMessage('c')]
    const begun = deserializeState({ ...serializeState(state), history: messages as unknown as Json })
    const [a, b] = readMessages(begun.history) as [Message, Message]
    const shared = (given: readonly Message[]): unknown =>
      (
        JSON.parse(Buffer.from(encodeSnapshot(begun, given)).toString()) as {
          history: unknown
        }
      ).history
    expect(shared([a, b])).toEqual({ carried: 2, messages: messages.slice(2) })
    expect(shared([a, sampleMessage('x')])).toEqual({ carried: 1, messages: messages.slice(1) })
    expect(shared([a, sampleMessage('x'), sampleMessage('y')])).toEqual({
      carried: 1,
      messages: messages.slice(1),
    })
    expect(shared([sampleMessage('x')])).toEqual(messages)
    expect(shared([sampleMessage('x'), b])).toEqual(messages)
    expect(shared([])).toEqual(messages)
    const snapshot = sealed(runId, encodeSnapshot(begun, [a, b]))
    const restored = await decodeSnapshot(runId, snapshot, async () => [...carried, sampleMessage('later')])
    expect(restored && readMessages(restored.history)).toEqual(messages)
  })
})
