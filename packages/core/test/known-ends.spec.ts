import { memoryLedger, type Ledger, type RunState } from '@tallystick/core'
import { evolve } from '@tallystick/core/machine'
import { everyFact, sampleMessage, sampleRunId, seededRandom, stamped } from '@tallystick/testkit'
import type { RunRecord } from '@tallystick/core/vocabulary'
import { describe, expect, it } from 'vitest'
import { KnownEnds } from '../src/runtime/known-ends.ts'
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
  const { runtime, agent, model, untilSettled, eventsOf } = stage({
    ...{ ledger, steps: replies, random: seededRandom(1) },
  })
  const session = runtime.session('talk')
  for (const input of ['1', '2', '3']) await untilSettled((await session.run(agent, input)).result)
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
    for (const { runtime, agent, untilSettled } of [...processes, ...processes])
      await untilSettled((await runtime.session('talk').run(agent, 'Go.')).result)
    expect(reads()).toBe(3)
    expect(processes[1]?.model.requests.at(-1)?.messages).toHaveLength(7)
  })
})

const millionChars = 'x'.repeat(1_000_000)
const asking = sampleMessage(millionChars)
const ledger = memoryLedger()

/** A run of a session that has ended after its user has said a million characters. */
function endedRun(number: number): RunState {
  const runId = sampleRunId(number)
  const facts = everyFact(runId)
  const events = stamped(runId, [
    { ...facts.run_started, sessionId: `session ${number}`, sessionPlace: 1 },
    { ...facts.input_received, message: asking },
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

  it('is kept of the sessions that were driven last, as many as four million characters hold', async () => {
    const ends = new KnownEnds()
    const states = [1, 2, 3, 4].map(endedRun)
    for (const state of [...states, states[1] as RunState]) ends.ended(state)
    const known = await Promise.all(states.map((state) => ends.find(recordOf(state), ledger)))
    expect(known.map((state) => state?.sessionId)).toEqual([undefined, 'session 2', 'session 3', 'session 4'])
    for (const number of [5, 6]) ends.ended(endedRun(number))
    const left = await Promise.all(states.map((state) => ends.find(recordOf(state), ledger)))
    expect(left.map((state) => state?.sessionId)).toEqual([undefined, 'session 2', undefined, undefined])
  })

  it('is nothing of a session that is too large alone, and what is known of others stays', async () => {
    const ends = new KnownEnds()
    const [small, large] = [endedRun(1), endedRun(2)]
    ends.ended(small)
    ends.ended({
      ...large,
      output: { value: [1, 2, 3, 4].map((number) => `${number}${millionChars}`) },
    })
    expect(await ends.find(recordOf(large), ledger)).toBeUndefined()
    expect(await ends.find(recordOf(small), ledger)).toBe(small)
  })

  it('counts the definition of an agent once, and each that is of one run alone', async () => {
    const shared = { ...endedRun(1).definition, instructions: millionChars }
    const withDefinition = (number: number, definition: RunState['definition']) =>
      ({ ...endedRun(number), definition }) as RunState
    const known = async (states: readonly RunState[]) => {
      const ends = new KnownEnds()
      for (const state of states) ends.ended(state)
      const found = await Promise.all(states.map((state) => ends.find(recordOf(state), ledger)))
      return found.filter((state) => state !== undefined).length
    }
    expect(await known([1, 2].map((number) => withDefinition(number, shared)))).toBe(2)
    expect(await known([1, 2].map((number) => withDefinition(number, { ...shared })))).toBe(1)
  })

  it('is nothing of a run that has not ended', async () => {
    const ends = new KnownEnds()
    const runId = sampleRunId(1)
    const [started] = stamped(runId, [
      { ...everyFact(runId).run_started, sessionId: 'talk', sessionPlace: 1 },
    ])
    const state = evolve(undefined, started as never)
    ends.ended(state)
    expect(await ends.find(recordOf(state), ledger)).toBeUndefined()
  })
})
