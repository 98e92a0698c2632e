import { memoryLedger, type Ledger, type RunState } from '@tallystick/core'
import { evolve } from '@tallystick/core/machine'
import { sampleFacts, sampleRunId, seededRandom, stampFacts } from '@tallystick/testkit'
import type { RunRecord } from '@tallystick/core/vocabulary'
import { describe, expect, it } from 'vitest'
import { KnownEnds } from '../src/runtime/session.ts'
import { checkedRun, stage } from './stage.ts'

/** A ledger that says how often a run was read. */
function counting(own: { readonly isWhole?: Ledger['isWhole'] | undefined } = {}) {
  const ledger = memoryLedger()
  let reads = 0
  const counted = {
    ...ledger,
    read: (...given: Parameters<Ledger['read']>) => (reads++, ledger.read(...given)),
    ...own,
  } as Ledger
  return { ledger: counted, reads: () => reads }
}

const replies = [{ text: 'One.' }, { text: 'Two.' }, { text: 'Three.' }]

/** Three runs of a session; answers what the model was shown last. */
async function talk(ledger: Ledger) {
  const { runtime, agent, model, waitUntilSettled, eventsOf } = stage({
    ...{ ledger, steps: replies, random: seededRandom(1) },
  })
  const session = runtime.session('talk')
  for (const input of ['1', '2', '3']) await waitUntilSettled((await session.run(agent, input)).result)
  return { messages: model.requests.at(-1)?.messages, session, eventsOf }
}

describe('the next run of a session', () => {
  it('reads nothing of the run before it where this process drove that, and the ledger knows it to be whole', async () => {
    const { ledger, reads } = counting()
    const { messages, session, eventsOf } = await talk(ledger)
    expect(reads()).toBe(0)
    expect(messages).toHaveLength(5)
    for await (const { runId } of session.runs()) checkedRun(await eventsOf(runId))
  })

  it.each([
    ['says that something was removed', async () => false],
    ['cannot know', async () => undefined],
    ['is never asked', undefined],
  ])('reads the run before it where the ledger %s', async (_, isWhole) => {
    const { ledger, reads } = counting({ isWhole })
    const { messages } = await talk(ledger)
    expect(reads()).toBe(2)
    expect(messages).toHaveLength(5)
  })

  it('reads a run that another process drove meanwhile', async () => {
    const { ledger, reads } = counting()
    const processes = [1, 2].map((seed) => stage({ ledger, steps: replies, random: seededRandom(seed) }))
    for (const { runtime, agent, waitUntilSettled } of [...processes, ...processes])
      await waitUntilSettled((await runtime.session('talk').run(agent, 'Go.')).result)
    expect(reads()).toBe(3)
    expect(processes[1]?.model.requests.at(-1)?.messages).toHaveLength(7)
  })
})

const ledger = memoryLedger()

/** A run of a session that has ended. */
function endedRun(number: number): RunState {
  const runId = sampleRunId(number)
  const facts = sampleFacts(runId)
  const events = stampFacts(runId, [
    { ...facts.run_started, sessionId: `session ${number}`, sessionPlace: 1 },
    facts.input_received,
    { ...facts.run_finished, turn: 0, reason: 'cancelled' },
  ])
  return events.reduce<RunState | undefined>(evolve, undefined) as RunState
}

function recordOf({ runId, seq, sessionId }: RunState): RunRecord {
  return { runId, head: { seq, epoch: 1 }, sessionId: sessionId as string, sessionPlace: 1 }
}

describe('what is known of the ends of runs', () => {
  it('is of a session, a run and a head', async () => {
    const ends = new KnownEnds()
    const state = endedRun(1)
    ends.ended(state)
    const record = recordOf(state)
    expect(await ends.find(record, ledger)).toBe(state)
    for (const other of [
      { sessionId: 'another' },
      { runId: sampleRunId(2) },
      { head: { seq: state.seq + 1, epoch: 1 } },
    ])
      expect(await ends.find({ ...record, ...other }, ledger)).toBeUndefined()
  })

  it('is kept of the sessions that ended last', async () => {
    const ends = new KnownEnds()
    const states = Array.from({ length: 17 }, (_, index) => endedRun(index + 1))
    const isKnown = async (state: RunState | undefined): Promise<boolean> =>
      (await ends.find(recordOf(state as RunState), ledger)) !== undefined
    for (const state of states.slice(0, 16)) ends.ended(state)
    expect(await Promise.all(states.map(isKnown))).toEqual([...Array(16).fill(true), false])
    // The first has ended again since.
    for (const state of [states[0] as RunState, states[16] as RunState]) ends.ended(state)
    expect(await Promise.all(states.map(isKnown))).toEqual([true, false, ...Array(15).fill(true)])
  })

  it('is nothing of a run that has not ended', async () => {
    const ends = new KnownEnds()
    const runId = sampleRunId(1)
    const [started] = stampFacts(runId, [
      { ...sampleFacts(runId).run_started, sessionId: 'talk', sessionPlace: 1 },
    ])
    const state = evolve(undefined, started as never)
    ends.ended(state)
    expect(await ends.find(recordOf(state), ledger)).toBeUndefined()
  })
})
