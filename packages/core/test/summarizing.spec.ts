import { filter, firstValueFrom } from 'rxjs'
import { describe, expect, it } from 'vitest'
import {
  type AgentOptions,
  createRuntime,
  defineAgent,
  memoryLedger,
  type Run,
  type RunState,
  type RuntimeEvent,
} from '@tallystick/core'
import { readMessages } from '@tallystick/core/internal'
import { evolve } from '@tallystick/core/machine'
import {
  checkTranscript,
  manualClock,
  mortalLedger,
  scriptedModel,
  waitUntilSettled,
  type ScriptedStep,
} from '@tallystick/testkit'
import { checkedRun, ofType, recorded, stage, typesOf } from './stage.ts'
import { summaryInstructions } from '../src/machine/compaction.ts'

const long = 'word '.repeat(400)
const paused = (text: string): ScriptedStep => ({ text, stopReason: 'paused' })
const compaction = { maxContextTokens: 1_000, keepMessages: 1 }

function talk(summarizer: ReturnType<typeof scriptedModel>, more: Partial<AgentOptions> = {}) {
  const steps = [paused(long), paused(long), { text: 'Done.' }]
  return stage({ steps, compaction: { ...compaction, summarize: summarizer }, ...more })
}

const evolveAll = (events: readonly RuntimeEvent[]) =>
  readMessages(events.reduce<RunState | undefined>(evolve, undefined)!.history)

describe('compaction by a model', () => {
  it('sums up older messages before a call that would grow too long, and its usage counts', async () => {
    const summarizer = scriptedModel(
      [{ text: 'They talked about words.', usage: { inputTokens: 50, outputTokens: 5 } }],
      'small',
    )
    const { play, model, eventsOf } = talk(summarizer)
    const result = await play('Talk.')
    expect(result).toMatchObject({
      reason: 'answered',
      text: 'Done.',
      usage: { inputTokens: 50, outputTokens: 5 },
    })
    expect(summarizer.requests).toHaveLength(1)
    expect(summarizer.requests[0]).toMatchObject({
      instructions: summaryInstructions,
      tools: [],
      toolChoice: { type: 'none' },
    })
    expect(JSON.stringify(summarizer.requests[0]?.messages)).toContain('User: Talk.')
    const shown = model.requests[2]?.messages ?? []
    expect(JSON.stringify(shown[0])).toContain('They talked about words.')
    expect(checkTranscript(shown)).toEqual([])
    const events = checkedRun(await eventsOf(result.runId))
    expect(ofType(events, 'context_compacted')).toMatchObject([
      { replacedMessages: 2, usage: { inputTokens: 50 } },
    ])
    const types = typesOf(events)
    expect(types.indexOf('compaction_started')).toBeLessThan(types.indexOf('context_compacted'))
  })

  it('given a summary as long as what it is of, then the messages are left out, and it costs once', async () => {
    const summarizer = scriptedModel([{ text: long.repeat(3) }], 'small')
    const { play, model, eventsOf } = talk(summarizer)
    const { runId, reason } = await play('Talk.')
    expect([reason, summarizer.requests.length]).toEqual(['answered', 1])
    const [compacted] = ofType(checkedRun(await eventsOf(runId)), 'context_compacted')
    expect(compacted?.tokensAfter).toBeLessThan(compacted?.tokensBefore ?? 0)
    expect(JSON.stringify(model.requests[2]?.messages[0])).toContain('was left out')
  })

  it('given messages shorter than the words that they were left out, then no turn asks for a summary', async () => {
    const summarizer = scriptedModel([], 'small')
    const steps = [paused('One.'), paused('Two.'), paused('Three.'), { text: 'Done.' }]
    const instructions = long
    const { play, eventsOf } = stage({
      ...{ steps, instructions },
      compaction: { maxContextTokens: 100, keepMessages: 1, summarize: summarizer },
    })
    const { runId, reason } = await play('Talk.')
    expect([reason, summarizer.requests.length]).toEqual(['answered', 0])
    const types = typesOf(await eventsOf(runId))
    expect(types.filter((type) => /compact/.test(type))).toEqual([])
  })

  it('leaves older messages out where that model fails', async () => {
    const { play, model, eventsOf } = talk(scriptedModel([{ fail: 'overloaded' }], 'small'))
    const { runId, reason } = await play('Talk.')
    expect(reason).toBe('answered')
    expect(JSON.stringify(model.requests[2]?.messages[0])).toContain(
      '(The oldest message of this conversation was left out',
    )
    expect(ofType(checkedRun(await eventsOf(runId)), 'context_compacted')).toMatchObject([
      { failure: { class: 'overloaded' } },
    ])
  })

  it('is not asked where no function and no model is given: older messages are left out', async () => {
    const { play, model } = stage({ steps: [paused(long), paused(long), { text: 'Done.' }], compaction })
    expect(await play('Talk.')).toMatchObject({ reason: 'answered' })
    expect(model.requests[2]?.messages).toHaveLength(3)
    expect(model.requests[2]?.messages[1]).toMatchObject({ parts: [{ text: 'Talk.' }] })
  })

  it('counts as a model call for the budget: past it, it is not made', async () => {
    const summarizer = scriptedModel([{ text: 'Summary.' }], 'small')
    const { play } = talk(summarizer, { limits: { maxTotalTokens: 1_100, onLimit: 'stop' } })
    expect(await play('Talk.')).toMatchObject({ reason: 'token_limit' })
    expect(summarizer.requests).toHaveLength(0)
  })

  it('answers a context overflow, once', async () => {
    const summarizer = scriptedModel([{ text: 'Summary.' }], 'small')
    const { play, eventsOf } = stage({
      steps: [paused(long), paused(long), { fail: 'context_overflow' }, { text: 'Fits.' }],
      compaction: { maxContextTokens: 1_000_000, keepMessages: 1, summarize: summarizer },
    })
    const result = await play('Talk.')
    expect(result).toMatchObject({ reason: 'answered', text: 'Fits.', turns: 3 })
    checkedRun(await eventsOf(result.runId))
  })

  it('is taken up again after a crash, and is given up in favour of leaving out when it crashes again and again', async () => {
    const store = memoryLedger()
    const clock = manualClock()
    const summarizer = scriptedModel(
      Array.from({ length: 20 }, (): ScriptedStep => ({ text: 'Sum', hang: true })),
      'small',
    )
    const model = scriptedModel([paused(long), paused(long), { text: 'Done.' }])
    const agent = defineAgent({
      ...{ name: 'agent', instructions: 'Talk.', model },
      compaction: { ...compaction, summarize: summarizer },
    })
    const process = () =>
      createRuntime({ ledger: mortalLedger(store), agents: [agent], host: { clock, report: () => {} } })
    const reached = (handle: Run, matches: (event: RuntimeEvent) => boolean): Promise<RuntimeEvent> =>
      firstValueFrom(handle.events$.pipe(filter(matches)))
    const run = process().run(agent, 'Talk.')
    run.result.catch(() => {})
    await reached(run, ({ type }) => type === 'compaction_started')
    for (let epoch = 2; epoch < 7; epoch++) {
      const resumed = process().resume(run.id, { takeOver: true })
      resumed.result.catch(() => {})
      await reached(resumed, (event) => event.type === 'run_resumed' && event.epoch === epoch)
    }
    expect(await waitUntilSettled(clock, process().resume(run.id, { takeOver: true }).result)).toMatchObject({
      text: 'Done.',
    })
    expect(summarizer.requests).toHaveLength(6)
    const events = checkedRun(await recorded(store, run.id))
    expect(ofType(events, 'context_compacted')).toHaveLength(1)
    expect(JSON.stringify(ofType(events, 'context_compacted')[0]?.summary)).toContain('left out')
  })

  it.each(['lives on', 'is interrupted'])(
    'lets guardrails find input in its place that came while the summarizer %s',
    async (fate) => {
      const store = memoryLedger()
      const clock = manualClock()
      const sum: ScriptedStep = { text: 'They talked.', hang: fate === 'is interrupted' }
      const summarizer = scriptedModel([sum, { text: 'They talked.' }], 'small')
      const agent = defineAgent({
        ...{ name: 'agent', instructions: 'Talk.' },
        model: scriptedModel([paused(long), paused(long), { text: 'Done.' }, { text: 'Done.' }]),
        guardrails: [{ name: 'veil', on: 'input', check: () => ({ replace: 'Veiled.' }) }],
        compaction: { ...compaction, summarize: summarizer },
      })
      const process = () =>
        createRuntime({ ledger: mortalLedger(store), agents: [agent], host: { clock, report: () => {} } })
      const run = process().run(agent, 'Talk.')
      run.result.catch(() => {})
      await firstValueFrom(run.events$.pipe(filter(({ type }) => type === 'compaction_started')))
      await run.steer('More.')
      const last = fate === 'is interrupted' ? process().resume(run.id, { takeOver: true }) : run
      expect(await waitUntilSettled(clock, last.result)).toMatchObject({ reason: 'answered' })
      const events = checkedRun(await recorded(store, run.id))
      const veiled = ofType(events, 'guardrail_tripped').filter(({ on }) => on === 'input')
      expect(veiled.map(({ action }) => action)).toEqual(['replace', 'replace'])
      expect(JSON.stringify(evolveAll(events))).not.toContain('More.')
    },
  )
})
