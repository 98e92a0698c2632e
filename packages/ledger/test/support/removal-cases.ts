import { ConfigurationError, createRuntime, defineAgent, memoryLedger } from '@tallystick/core'
import { manualClock, sampleRunId, scriptedModel } from '@tallystick/testkit'
import { applyRetention, exportEvents, foldTo, importEvents, redact, verifyRun } from '@tallystick/ledger'
import { replayRun } from '@tallystick/replay'
import { expect } from 'vitest'
import {
  eventsOf,
  finderRuntime,
  large,
  play,
  secret,
  storeVerdict,
  suspended,
  type RemovalBed,
} from './removal-bed.ts'

/** What taking content away promises, each case by its claim. Any store that can do it keeps them. */
export const removalCases: Readonly<Record<string, (bed: RemovalBed) => Promise<void>>> = {
  async 'a redacted event keeps its facts and says who took the rest away, and the run verifies'({ open }) {
    const ledger = open()
    const runId = await play(ledger)
    const before = await eventsOf(ledger, runId)
    const whole = await foldTo(ledger, runId)
    const result = before.find(({ type }) => type === 'tool_result')
    const removed = await redact(ledger, runId, [result?.seq ?? 0], { by: 'ada', reason: 'ticket 7', at: 5 })
    expect(removed).toBe(1)
    const after = await eventsOf(ledger, runId)
    expect(after.length).toBe(before.length)
    expect(after[(result?.seq ?? 0) - 1]).toEqual({
      ...result,
      content: [{ type: 'text', text: '[removed]' }],
      removed: { kind: 'redacted', by: 'ada', reason: 'ticket 7', at: 5 },
    })
    expect(after.filter(({ seq }) => seq !== result?.seq)).toEqual(
      before.filter(({ seq }) => seq !== result?.seq),
    )
    const { totals, phase } = await foldTo(ledger, runId)
    expect({ totals, phase }).toEqual({ totals: whole.totals, phase: whole.phase })
    expect(await verifyRun(ledger, runId)).toMatchObject({
      ok: true,
      events: before.length,
      missing: [{ kind: 'redacted', by: 'ada', reason: 'ticket 7', at: 5, events: 1 }],
    })
    expect(await storeVerdict(ledger)).toMatchObject({ ok: true, droppedRuns: 0 })
    await expect(
      replayRun(ledger, runId, () => Promise.reject(new Error('not asked')) as never),
    ).rejects.toThrow(`the content of event ${result?.seq} is redacted by ada`)
    // Once is enough.
    expect(await redact(ledger, runId, [result?.seq ?? 0], { by: 'ada', reason: 'again' })).toBe(0)
    await ledger.close()
  },

  async 'the next run of a session is shown what is left of a run whose text another process took away'({
    open,
  }) {
    const clock = manualClock()
    const model = scriptedModel([{ text: `Found ${secret}.` }, { text: 'Nothing is known.' }])
    const agent = defineAgent({ name: 'finder', instructions: 'Look.', model })
    const ledger = open()
    const session = createRuntime({ ledger, agents: [agent], host: { clock } }).session('s')
    const first = await session.run(agent, `Where is ${secret}?`)
    await first.result
    const other = open()
    await redact(other, first.id, 'all', { by: 'ada', reason: 'asked for' })
    await other.close()
    await (
      await session.run(agent, 'Where?')
    ).result
    expect(model.requests).toHaveLength(2)
    expect(JSON.stringify(model.requests[1])).not.toContain(secret)
    await ledger.close()
  },

  async 'a run that waits and is redacted whole still needs the context of its application to continue'({
    open,
  }) {
    const ledger = open()
    const runId = await play(ledger, { context: { user: 'ada' }, approve: false })
    await redact(ledger, runId, 'all', { by: 'ada', reason: 'asked for' })
    await expect(finderRuntime(ledger).resume(runId).result).rejects.toThrow('was started with a context')
    await ledger.close()
  },

  async 'of a run that is redacted whole no text is left in the store, and it still lists, folds and verifies'({
    open,
    holds,
  }) {
    const ledger = open()
    const runId = await play(ledger, { sessionId: 's' })
    expect(await holds(secret)).toBe(true)
    expect(await holds('a large secret. a large secret.')).toBe(true)
    await redact(ledger, runId, 'all', { by: 'ada', reason: 'asked for' })
    expect((await foldTo(ledger, runId)).phase).toBe('done')
    expect(await verifyRun(ledger, runId)).toMatchObject({ ok: true })
    expect(await storeVerdict(ledger)).toMatchObject({ ok: true })
    expect(JSON.stringify(await eventsOf(ledger, runId))).not.toContain('secret')
    expect(await holds('secret')).toBe(false)
    await ledger.close()
    expect(await holds('secret')).toBe(false)
    expect(await holds('Seoul')).toBe(false)
  },

  async 'a suspended run whose past was redacted continues, and verifies to its end'({ open }) {
    const ledger = open()
    const runId = await play(ledger, { approve: false })
    const { pendingCall, runtime, run } = await suspended(ledger, runId)
    await redact(ledger, runId, [1, 2], { by: 'ada', reason: 'asked for' })
    await run.approve(pendingCall, { by: 'me' })
    expect((await runtime.resume(runId).result).reason).toBe('answered')
    expect(await verifyRun(ledger, runId)).toMatchObject({
      ok: true,
      missing: [{ kind: 'redacted', events: 2 }],
    })
    await ledger.close()
  },

  async 'refuses to redact what is not there, without a name, or beneath a ledger that keeps no payloads'({
    open,
  }) {
    const ledger = open()
    const runId = await play(ledger)
    const by = { by: 'ada', reason: 'x' }
    await expect(redact(ledger, runId, [1, 999], by)).rejects.toThrow(/has events 1 to \d+, so event 999/)
    await expect(redact(ledger, runId, [1], { by: '', reason: 'x' })).rejects.toThrow(ConfigurationError)
    await expect(redact(ledger, sampleRunId(9), [1], by)).rejects.toThrow(/is not in this ledger/)
    await expect(redact(memoryLedger(), runId, [1], by)).rejects.toThrow(ConfigurationError)
    expect(await verifyRun(ledger, runId)).not.toHaveProperty('missing')
    await ledger.close()
  },

  async 'a large content is kept once, however many runs hold it, and goes with the last of them'({
    open,
    holds,
  }) {
    const ledger = open()
    const first = await play(ledger, { sessionId: 's' })
    const second = await play(ledger, { sessionId: 's' })
    expect(JSON.stringify(await eventsOf(ledger, second)).split(large).length - 1).toBeGreaterThan(1)
    await redact(ledger, first, 'all', { by: 'ada', reason: 'x' })
    expect(await storeVerdict(ledger)).toMatchObject({ ok: true })
    expect(JSON.stringify(await eventsOf(ledger, second))).toContain(large)
    await redact(ledger, second, 'all', { by: 'ada', reason: 'x' })
    expect(await storeVerdict(ledger)).toMatchObject({ ok: true })
    await ledger.close()
    expect(await holds('a large secret')).toBe(false)
  },

  async 'retention takes each class away at its age, from runs that have ended'({ open, holds }) {
    const ledger = open()
    const ended = await play(ledger)
    const waiting = await play(ledger, { approve: false })
    const { at } = await foldTo(ledger, ended)
    expect(await applyRetention(ledger, { deltasMs: 10, contentMs: 20 }, { now: at - 1000 })).toMatchObject({
      deltas: 0,
      content: 0,
    })
    const deltas = (await eventsOf(ledger, ended)).filter(({ type }) => /delta/.test(type)).length
    expect(deltas).toBeGreaterThan(1)
    const dry = await applyRetention(ledger, { deltasMs: 10, contentMs: 20 }, { now: at + 11, dryRun: true })
    expect(dry).toMatchObject({ deltas, content: 0 })
    const received: number[] = []
    expect(
      await applyRetention(
        ledger,
        { deltasMs: 10, contentMs: 20 },
        { now: at + 11, onProgress: (soFar) => received.push(soFar.deltas) },
      ),
    ).toEqual({ deltas, content: 0, runs: 0, events: 0 })
    expect(received.at(-1)).toBe(deltas)
    const { removed, ...kept } =
      (await eventsOf(ledger, ended)).find(({ type }) => type === 'assistant_text_delta') ?? {}
    expect([removed, kept]).toMatchObject([{ kind: 'expired', by: 'retention', at: at + 11 }, { text: '' }])
    expect(await holds(secret)).toBe(true)
    const content = (
      await applyRetention(ledger, { contentMs: 20 }, { now: at + 21, by: 'nightly', reason: '20 ms' })
    ).content
    expect(content).toBeGreaterThan(8)
    expect(await applyRetention(ledger, { deltasMs: 10, contentMs: 20 }, { now: at + 22 })).toMatchObject({
      deltas: 0,
      content: 0,
    })
    expect(JSON.stringify(await eventsOf(ledger, ended))).not.toContain('secret')
    expect(
      (await verifyRun(ledger, ended)).missing?.map(({ kind, by, reason }) => [kind, by, reason]),
    ).toEqual(
      expect.arrayContaining([
        ['expired', 'nightly', '20 ms'],
        ['expired', 'retention', undefined],
      ]),
    )
    expect(await verifyRun(ledger, waiting)).not.toHaveProperty('missing')
    expect(await storeVerdict(ledger)).toMatchObject({ ok: true, runs: 2 })
    await ledger.close()
  },

  async 'a run that is dropped leaves its name, its end and who dropped it; the ledger verifies, and it does not come back'({
    open,
    holds,
  }) {
    const ledger = open()
    const [first, second] = [await play(ledger), await play(ledger)]
    const { at, seq } = await foldTo(ledger, first)
    const events = await eventsOf(ledger, first)
    const report = await applyRetention(ledger, { factsMs: 5 }, { now: at + 6 })
    expect(report).toMatchObject({ runs: 2, events: seq * 2 })
    expect(await Array.fromAsync(ledger.runs())).toEqual([])
    expect(await ledger.head(second)).toBeUndefined()
    expect(await Array.fromAsync(ledger.find())).toEqual([])
    await expect(
      ledger.append(first, { expectedSeq: 0, epoch: 1 }, events.slice(0, 2), { durability: 'barrier' }),
    ).rejects.toThrow(/dropped/)
    const third = await play(ledger)
    expect(await storeVerdict(ledger)).toMatchObject({ ok: true, runs: 1, droppedRuns: 2 })
    expect(await verifyRun(ledger, third)).toMatchObject({ ok: true })
    await ledger.close()
    expect(await holds(first)).toBe(true)
  },

  async 'ages that are none are refused'({ open }) {
    const ledger = open()
    for (const ages of [{}, { contentMs: -1 }, { factsMs: Number.NaN }]) {
      await expect(applyRetention(ledger, ages)).rejects.toThrow(ConfigurationError)
    }
    await ledger.close()
  },

  async 'verify finds a removal that was changed or left out'({ open, tamper }) {
    const ledger = open()
    const runId = await play(ledger)
    for (const seq of [2, 3, 4]) await redact(ledger, runId, [seq], { by: 'ada', reason: 'x' })
    await ledger.close()
    const first = { what: 'removal 1', expected: 'as it was written', found: 'another' }
    const tried: readonly (readonly [statement: string, back: string, broken: object])[] = [
      [`update removal set reason = 'y'`, `update removal set reason = 'x'`, first],
      ['delete from removal where pos = 2', '', { what: 'removal', expected: '2', found: '3' }],
      [`update removal set digest = 'x'`, '', first],
    ]
    for (const [statement, back, broken] of tried) {
      await tamper(statement)
      const reader = open()
      expect(await storeVerdict(reader)).toMatchObject({ ok: false, broken })
      await reader.close()
      if (back !== '') await tamper(back)
    }
  },

  async 'what was removed stays marked through an export and an import'({ open }) {
    const ledger = open()
    const runId = await play(ledger)
    await redact(ledger, runId, [2], { by: 'ada', reason: 'x', at: 5 })
    const lines = await Array.fromAsync(exportEvents(ledger))
    const copied = memoryLedger()
    await importEvents(copied, lines)
    expect(await eventsOf(copied, runId)).toEqual(await eventsOf(ledger, runId))
    expect((await eventsOf(copied, runId))[1]?.removed).toEqual({
      kind: 'redacted',
      by: 'ada',
      reason: 'x',
      at: 5,
    })
    await ledger.close()
  },
}
