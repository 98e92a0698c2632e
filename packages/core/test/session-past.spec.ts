import { describe, expect, it } from 'vitest'
import {
  ConfigurationError,
  LedgerConflictError,
  memoryLedger,
  type Ledger,
  type RunOptions,
} from '@tallystick/core'
import { sampleRunId, seededRandom } from '@tallystick/testkit'
import { checkedRun, ofType, stage as stageOf, type Stage } from './stage.ts'

const texts = ['One.', 'Two.', 'Three.'].map((text) => ({ text }))

function stage(ledger: Ledger = memoryLedger()): Stage {
  return stageOf({ steps: texts, random: seededRandom(1), ledger })
}

/** Plays a run, and answers how its first event says that it began. */
async function begin(set: Stage, options: RunOptions) {
  const { runtime, agent, waitUntilSettled: settle } = set
  const { runId } = await settle(runtime.run(agent, 'Go.', options).result)
  const events = checkedRun(await set.eventsOf(runId))
  const { parent, sessionId, sessionPlace, subject } = ofType(events, 'run_started')[0]!
  const carried = ofType(events, 'history_carried')[0]?.messages.length ?? 0
  return { runId, seq: events.length, parent, sessionId, sessionPlace, subject, carried }
}

describe('a run', () => {
  it('records what it follows: the session, a step back in it, a branch of it, or of a run without a session', async () => {
    const set = stageOf({ steps: [...texts, ...texts], random: seededRandom(1) })
    const chat = { sessionId: 'chat' }
    const first = await begin(set, { ...chat, subject: 'ada' })
    const second = await begin(set, chat)
    const from = { runId: first.runId, atSeq: first.seq }
    const back = await begin(set, { ...chat, from })
    const branch = await begin(set, { sessionId: 'other', from: { runId: first.runId } })
    const alone = await begin(set, { from })
    const further = await begin(set, { from: { runId: alone.runId } })
    const said = { parent: { runId: first.runId, seq: first.seq }, carried: 2, subject: 'ada' }
    const { parent } = said
    expect([first, second, back, branch, alone, further]).toMatchObject([
      { sessionId: 'chat', sessionPlace: 1, parent: undefined, carried: 0 },
      { ...said, sessionId: 'chat', sessionPlace: 2, parent: { ...parent, relation: 'session' } },
      { ...said, sessionId: 'chat', sessionPlace: 3, parent: { ...parent, relation: 'session' } },
      { ...said, sessionId: 'other', sessionPlace: 1, parent: { ...parent, relation: 'branch' } },
      { ...said, sessionId: undefined, parent: { ...parent, relation: 'branch' } },
      {
        sessionId: undefined,
        carried: 4,
        parent: { runId: alone.runId, relation: 'branch' },
        subject: 'ada',
      },
    ])
    for (const each of [alone, further]) expect(each.sessionPlace).toBeUndefined()
  })

  it('of a session asks its ledger for one run, however many the session has', async () => {
    const ledger = memoryLedger()
    const filters: Parameters<Ledger['runs']>[0][] = []
    const set = stage({
      ...ledger,
      runs(filter) {
        filters.push(filter)
        return ledger.runs(filter)
      },
    })
    await begin(set, { sessionId: 'chat' })
    await begin(set, { sessionId: 'chat' })
    expect(filters).toEqual([1, 2].map(() => ({ sessionId: 'chat', limit: 1 })))
  })

  it('follows no run that was removed after it was listed', async () => {
    const ledger = memoryLedger()
    const gone = { runId: sampleRunId(9), sessionId: 'chat', sessionPlace: 4 }
    const set = stage({
      ...ledger,
      async *runs() {
        yield gone as never
      },
    })
    expect(await set.runtime.session('chat').history()).toBeUndefined()
    expect(await begin(set, { sessionId: 'chat' })).toMatchObject({
      ...{ sessionPlace: 5, parent: undefined, carried: 0 },
    })
  })
})

describe('an edit of the past that means another history', () => {
  const edit = (of: string, index = 0) => ({ of, edits: [{ index }] })

  it('is a conflict, which says what the run would follow', async () => {
    const set = stage()
    const other = sampleRunId(9)
    const first = begin(set, { sessionId: 'chat', edit: edit(other) })
    await expect(first).rejects.toThrow(LedgerConflictError)
    await expect(first).rejects.toThrow(`history of run ${other}, but this run has no past`)
    const { runId } = await begin(set, { sessionId: 'chat' })
    const second = begin(set, { sessionId: 'chat', edit: edit(other) })
    await expect(second).rejects.toThrow(`but this run follows run ${runId}`)
    const joining = set.runtime.session('chat').run(set.agent, 'Go.', { whenBusy: 'join', edit: edit(other) })
    await expect(set.waitUntilSettled(joining)).rejects.toThrow(`but this run follows run ${runId}`)
  })

  it('is refused where it names no message, with the places that there are', async () => {
    const set = stage()
    const { runId } = await begin(set, { sessionId: 'chat' })
    const refused = begin(set, { sessionId: 'chat', edit: edit(runId, 2) })
    await expect(refused).rejects.toThrow(ConfigurationError)
    await expect(refused).rejects.toThrow('they have to name places from 0 to 1, ascending')
    expect(await begin(set, { sessionId: 'chat', edit: edit(runId, 1) })).toMatchObject({ sessionPlace: 2 })
  })
})
