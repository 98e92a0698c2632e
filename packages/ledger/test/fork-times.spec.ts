// A fork has the events of another run, with their times. A list tells when the fork itself began.
import { createRuntime, defineAgent, type Ledger, memoryLedger, type RunId } from '@tallystick/core'
import { buildForkedEvents } from '@tallystick/core/internal'
import { manualClock, sampleRunId, scriptedModel } from '@tallystick/testkit'
import { readLedgerStats, readRunSummaries, readRunSummary } from '@tallystick/ledger'
import { sqliteLedger } from '@tallystick/ledger/sqlite'
import { describe, expect, it, onTestFinished } from 'vitest'
import { summarizeEndedRuns } from '../src/projection/ended-runs.ts'
import { temporaryFile } from './support/temporary-folder.ts'

const day = 86_400_000
const monday = Date.UTC(2026, 10, 23)
const tuesday = monday + day

/** A run on Monday, and on Tuesday a fork of it in a session. */
async function forked(ledger: Ledger) {
  const model = scriptedModel([{ text: 'One.' }, { text: 'Two.' }])
  const agent = defineAgent({ name: 'teller', instructions: 'Answer.', model })
  const runtimeAt = (at: number) =>
    createRuntime({ ledger, agents: [agent], host: { clock: manualClock(at) } })
  const { runId } = await runtimeAt(monday).run(agent, 'Hello.').result
  const edit = { input: 'Goodbye.' }
  const fork = await runtimeAt(tuesday).fork(runId, { atSeq: 2, edit, sessionId: 'ann' }).result
  return { runId, forkId: fork.runId }
}

/** Appends a fork that no process has driven yet; its id tells the time at which it was made. */
async function undriven(ledger: Ledger, source: RunId, forkId: RunId): Promise<void> {
  const shared = await Array.fromAsync(ledger.read(source, { toSeq: 2 }))
  const events = buildForkedEvents(shared, { runId: forkId })
  await ledger.append(forkId, { expectedSeq: 0, epoch: 1 }, events, { durability: 'lazy' })
}

describe.each([
  ['in memory', memoryLedger],
  ['in SQLite', () => sqliteLedger(temporaryFile())],
])('a fork in a ledger %s', (_where, open) => {
  it('began when it was forked, and the run that it was made of when that began', async () => {
    const ledger = open()
    onTestFinished(() => ledger.close())
    const { runId, forkId } = await forked(ledger)
    const [first] = await Array.fromAsync(ledger.read(forkId, { toSeq: 1 }))
    expect(first?.at).toBe(monday)
    const times = { startedAt: tuesday, lastAt: tuesday }
    expect(await readRunSummary(ledger, forkId)).toMatchObject(times)
    expect(await readRunSummary(ledger, runId)).toMatchObject({ startedAt: monday, lastAt: monday })
    const listed = await Array.fromAsync(readRunSummaries(ledger, {}))
    expect(listed.find((summary) => summary.runId === forkId)).toMatchObject(times)
    const { sessions } = await readLedgerStats(ledger, { since: 0, maxListed: 10 })
    expect(sessions).toMatchObject([{ sessionId: 'ann', ...times }])
    const ended = await summarizeEndedRuns(ledger, await Array.fromAsync(ledger.runs()))
    for (const summary of ended.values()) expect(summary).toEqual(await readRunSummary(ledger, summary.runId))
  })

  it('that was not driven yet counts among the runs since then', async () => {
    const ledger = open()
    onTestFinished(() => ledger.close())
    const { runId } = await forked(ledger)
    const wednesday = tuesday + day
    const time = wednesday.toString(16).padStart(12, '0')
    const forkId = `${time.slice(0, 8)}-${time.slice(8)}-7000-8000-000000000000` as RunId
    await undriven(ledger, runId, forkId)
    expect(await readRunSummary(ledger, forkId)).toMatchObject({ startedAt: wednesday, lastAt: wednesday })
    const since = await Array.fromAsync(readRunSummaries(ledger, { since: wednesday }))
    expect(since.map((summary) => summary.runId)).toEqual([forkId])
  })

  it('whose id tells no time, or an earlier one, began with its first event', async () => {
    const ledger = open()
    onTestFinished(() => ledger.close())
    const { runId } = await forked(ledger)
    const noTime = sampleRunId(9).replace(/-7/, '-8') as RunId
    for (const forkId of [noTime, sampleRunId(8)]) {
      await undriven(ledger, runId, forkId)
      expect(await readRunSummary(ledger, forkId)).toMatchObject({ startedAt: monday, lastAt: monday })
    }
  })
})
