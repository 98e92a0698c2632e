import {
  agentTool,
  createRuntime,
  defineAgent,
  memoryLedger,
  type Ledger,
  type RunId,
} from '@tallystick/core'
import {
  exportEvents,
  importEvents,
  readRunSummaries,
  redact,
  searchEvents,
  type SummaryFilter,
  verifyLedger,
  verifyRun,
  watch,
} from '@tallystick/ledger'
import { sqliteLedger } from '@tallystick/ledger/sqlite'
import { sampleFacts, scriptedModel, stampFacts } from '@tallystick/testkit'
import { lastValueFrom, toArray } from 'rxjs'
import { describe, expect, it, onTestFinished } from 'vitest'
import { emptyLedgerFile } from './support/temporary-folder.ts'

const stores: readonly [string, () => Ledger][] = [
  ['in memory', () => memoryLedger()],
  ['in a file', () => sqliteLedger(emptyLedgerFile())],
]

/** Runs that have ended, in the order of their starts. */
async function playRuns(ledger: Ledger, count: number): Promise<readonly RunId[]> {
  const model = scriptedModel(Array.from({ length: count }, () => ({ text: 'Four.' })))
  const agent = defineAgent({ name: 'sums', instructions: 'Add.', model })
  const runtime = createRuntime({ ledger, agents: [agent] })
  const ids: RunId[] = []
  for (let run = 0; run < count; run++) ids.push((await runtime.run(agent, 'Two and two?').result).runId)
  return ids
}

describe.each(stores)('feedback on record %s', (_where, open) => {
  const opened = (): Ledger => {
    const ledger = open()
    onTestFinished(() => ledger.close())
    return ledger
  }

  it('verifies, is exported and imported, and is found by its words', async () => {
    const ledger = opened()
    const [runId] = (await playRuns(ledger, 1)) as [RunId]
    await createRuntime({ ledger }).feedback(runId, { by: 'ada', score: 0, note: 'Not the sum.' })
    expect(await verifyRun(ledger, runId)).toMatchObject({ ok: true })
    for await (const verdict of verifyLedger(ledger)) expect(verdict).toMatchObject({ ok: true })
    const copy = opened()
    await importEvents(copy, exportEvents(ledger))
    expect(await Array.fromAsync(copy.read(runId))).toEqual(await Array.fromAsync(ledger.read(runId)))
    const found = await Array.fromAsync(searchEvents(copy, { call: { inputs: [] }, text: 'not the sum' }))
    expect(found).toMatchObject([{ runId, type: 'feedback_given', text: 'ada 0 Not the sum.' }])
  })

  it('chooses runs by who gave it and by its score', async () => {
    const ledger = opened()
    const runs = await playRuns(ledger, 4)
    const [none, low, mixed, noted] = runs as readonly [RunId, RunId, RunId, RunId]
    const runtime = createRuntime({ ledger })
    await runtime.feedback(low, { by: 'ada', score: 0.2 })
    await runtime.feedback(mixed, { by: 'ada', score: 0.9 })
    await runtime.feedback(mixed, { by: 'bob', score: 0.1 })
    await runtime.feedback(noted, { by: 'bob', note: 'Hm.' })
    const found = async (filter: SummaryFilter['feedback']) => {
      const ids = await Array.fromAsync(readRunSummaries(ledger, { feedback: filter }), ({ runId }) => runId)
      return ids.toReversed()
    }
    expect(await found({})).toEqual([low, mixed, noted])
    expect(await found({ by: 'bob' })).toEqual([mixed, noted])
    expect(await found({ maxScore: 0.2 })).toEqual([low, mixed])
    // Her score is the high one, and his the low one.
    expect(await found({ by: 'ada', maxScore: 0.2 })).toEqual([low])
    expect(await found({ by: 'bob', minScore: 0.5 })).toEqual([])
    expect(await found({ minScore: 0.15, maxScore: 0.3 })).toEqual([low])
    const summaries = await Array.fromAsync(readRunSummaries(ledger))
    expect(summaries.map((run) => 'feedback' in run && run.feedback).toReversed()).toEqual([
      false,
      { count: 1, lowest: 0.2, highest: 0.2 },
      { count: 2, lowest: 0.1, highest: 0.9 },
      { count: 1 },
    ])
    expect(JSON.stringify(summaries)).not.toMatch(/"(ada|bob)"/)
    expect(none).toBeDefined()
  })

  it('on a child run hides nothing of what its parent counted', async () => {
    const ledger = opened()
    const child = defineAgent({
      name: 'child',
      description: 'Adds.',
      instructions: 'Add.',
      model: scriptedModel([{ text: 'Four.', usage: { inputTokens: 9, outputTokens: 1 } }]),
    })
    const asks = scriptedModel([
      { toolCalls: [{ name: 'child', input: { task: 'Add.' } }] },
      { text: 'Four.' },
    ])
    const agent = defineAgent({ name: 'boss', instructions: 'Ask.', model: asks, tools: [agentTool(child)] })
    const { runId } = await createRuntime({ ledger, agents: [agent] }).run(agent, 'Two and two?').result
    const [start] = await Array.fromAsync(ledger.find({ runId, types: ['tool_started'] }))
    if (start?.type !== 'tool_started') throw new Error('The tool did not start.')
    for (const score of [0, 1]) await createRuntime({ ledger }).feedback(start.child!, { by: 'ada', score })
    expect(await verifyRun(ledger, runId)).toMatchObject({ ok: true })
    expect(await verifyRun(ledger, start.child!)).toMatchObject({ ok: true })
  })

  it('leaves the status and the times of the run as they were', async () => {
    const ledger = opened()
    const [runId] = (await playRuns(ledger, 1)) as [RunId]
    const [before] = await Array.fromAsync(readRunSummaries(ledger))
    const later = { now: () => Date.UTC(2100, 0), schedule: () => () => {} }
    await createRuntime({ ledger, host: { clock: later } }).feedback(runId, { by: 'ada', score: 1 })
    const [after] = await Array.fromAsync(readRunSummaries(ledger))
    const feedback = { count: 1, lowest: 1, highest: 1 }
    expect(after).toEqual({ ...before, seq: before!.seq + 1, feedback })
    const [found] = await Array.fromAsync(readRunSummaries(ledger, { statuses: ['done'] }))
    expect(found).toEqual(after)
  })

  it('ends what is watched from any place on', async () => {
    const ledger = opened()
    const [runId] = (await playRuns(ledger, 1)) as [RunId]
    for (const score of [0, 1]) await createRuntime({ ledger }).feedback(runId, { by: 'ada', score })
    const events = await Array.fromAsync(ledger.read(runId))
    for (let from = 1; from <= events.length + 1; from++)
      expect(await lastValueFrom(watch(ledger, runId, from).pipe(toArray()))).toEqual(events.slice(from - 1))
  })

  it('is the only event that verifies behind the end of a run', async () => {
    const ledger = opened()
    const [runId] = (await playRuns(ledger, 1)) as [RunId]
    await createRuntime({ ledger }).feedback(runId, { by: 'ada', score: 1 })
    const last = (await Array.fromAsync(ledger.read(runId))).at(-1)!
    const [more] = stampFacts(runId, [{ ...sampleFacts(runId).cancel_requested, turn: last.turn }], {
      afterSeq: last.seq,
      epoch: last.epoch,
    })
    const expected = { expectedSeq: last.seq, epoch: last.epoch }
    await ledger.append(runId, expected, [{ ...more!, at: last.at }], { durability: 'barrier' })
    expect(await verifyRun(ledger, runId)).toMatchObject({ ok: false, broken: { seq: last.seq + 1 } })
  })
})

it('keeps the score, and neither the note nor its place in a search, once it is redacted', async () => {
  const ledger = sqliteLedger(emptyLedgerFile())
  onTestFinished(() => ledger.close())
  const [runId] = (await playRuns(ledger, 1)) as [RunId]
  const runtime = createRuntime({ ledger })
  await runtime.feedback(runId, { by: 'ada', score: 0, note: 'My name is Olga.' })
  await redact(ledger, runId, 'all', { by: 'dpo', reason: 'asked for' })
  const last = (await Array.fromAsync(ledger.read(runId))).at(-1)
  expect(last).toMatchObject({ type: 'feedback_given', by: 'ada', score: 0, removed: { by: 'dpo' } })
  expect(JSON.stringify(last)).not.toContain('Olga')
  expect(await verifyRun(ledger, runId)).toMatchObject({ ok: true })
  // A run without its content takes more of it.
  expect(await runtime.feedback(runId, { by: 'bob', score: 1 })).toEqual({ accepted: true })
  expect(await verifyRun(ledger, runId)).toMatchObject({ ok: true })
})

it('keeps no note on a run that keeps digests alone, whichever process records it', async () => {
  const ledger = sqliteLedger(emptyLedgerFile())
  onTestFinished(() => ledger.close())
  const model = scriptedModel([{ text: 'Four.' }])
  const recording = { content: 'digests' } as const
  const agent = defineAgent({ name: 'sums', instructions: 'Add.', model, recording })
  const { runId } = await createRuntime({ ledger, agents: [agent] }).run(agent, 'Two and two?').result
  await createRuntime({ ledger }).feedback(runId, { by: 'ada', score: 0, note: 'My name is Olga.' })
  const events = await Array.fromAsync(ledger.read(runId))
  expect(events.at(-1)).toMatchObject({ type: 'feedback_given', score: 0, removed: { kind: 'redacted' } })
  expect(JSON.stringify(events)).not.toContain('Olga')
})
