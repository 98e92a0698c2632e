// Hooks observe what is on record, in order, awaited or not, and cannot harm the run.
import { describe, expect, it } from 'vitest'
import {
  createRuntime,
  defineAgent,
  defineGuardrail,
  type HookMoment,
  memoryLedger,
  type RunHooks,
} from '@tallystick/core'
import { manualClock, scriptedModel, seededRandom, testTool, waitUntilSettled } from '@tallystick/testkit'
import { checkedRun, recorded, stage as stageOf, type Stage, type StageOptions } from './stage.ts'

let processes = 0
const stage = (options: StageOptions = {}): Stage =>
  stageOf({ random: seededRandom(++processes), ...options })

const names = [
  ...(['runStarted', 'runEnded', 'turnStarted', 'turnEnded', 'modelCallStarted', 'modelCallEnded'] as const),
  ...(['toolStarted', 'toolEnded', 'handoffStarted', 'handoffEnded', 'guardrailTripped'] as const),
  ...(['guardrailsEnded', 'compactionStarted', 'compactionEnded'] as const),
]

/** Hooks that note when they are called. */
function noting(note: (name: string, moment: HookMoment) => void | Promise<void>): RunHooks {
  return Object.fromEntries(names.map((name) => [name, (moment: HookMoment) => note(name, moment)]))
}

const look = testTool({ name: 'look', run: () => 'seen' })
const looks = [{ toolCalls: [{ name: 'look', input: {} }] }, { text: 'Done.' }]

describe('hooks', () => {
  it('are called for each moment of a run, with the agent of that moment and the context', async () => {
    const clock = manualClock()
    const summarize = scriptedModel([{ text: 'Short.' }], 'small')
    const guardrail = defineGuardrail({ name: 'watch', on: 'input', check: () => ({ record: 'odd' }) })
    const billing = defineAgent({
      name: 'billing',
      instructions: 'Bill.',
      tools: [look],
      model: scriptedModel(looks),
      compaction: { maxContextTokens: 1, keepMessages: 1, summarize },
    })
    const desk = defineAgent({
      name: 'desk',
      instructions: 'Greet.',
      guardrails: [guardrail],
      handoffs: [billing],
      model: scriptedModel([
        { fail: 'overloaded' },
        { toolCalls: [{ name: 'transfer_to_billing', input: {} }] },
      ]),
    })
    const seen: string[] = []
    const hooks = noting((name, { agent, context }) => void seen.push(`${name} ${agent} ${String(context)}`))
    const runtime = createRuntime({ ledger: memoryLedger(), host: { clock, random: () => 0 } })
    await waitUntilSettled(clock, runtime.run(desk, 'Go.', { hooks, context: 'ada' }).result)
    const once = [...new Set(seen)]
    expect(new Set(once.map((line) => line.split(' ')[0]))).toEqual(new Set(names))
    expect(once.every((line) => line.endsWith(' ada'))).toBe(true)
    expect(seen[0]).toBe('runStarted desk ada')
    expect(seen.at(-1)).toBe('runEnded billing ada')
    expect(seen.indexOf('handoffStarted desk ada')).toBeLessThan(seen.indexOf('handoffEnded desk ada'))
    const turns = seen.filter((line) => line.startsWith('turn')).map((line) => line.split(' ')[0])
    expect(turns).toEqual(turns.map((_, index) => (index % 2 === 0 ? 'turnStarted' : 'turnEnded')))
    expect(seen.filter((line) => line === 'modelCallStarted desk ada')).toHaveLength(2)
    expect(seen.filter((line) => line === 'turnStarted desk ada')).toHaveLength(1)
  })

  it('see only what is on record', async () => {
    const set = stage({ tools: [look], steps: looks })
    const unrecorded: string[] = []
    const hooks = {
      awaited: true,
      ...noting(async (name, { event }) => {
        const events = await recorded(set.ledger, event.runId)
        if (!events.some(({ seq, type }) => seq === event.seq && type === event.type)) unrecorded.push(name)
      }),
    }
    await set.waitUntilSettled(set.runtime.run(set.agent, 'Go.', { hooks }).result)
    expect(unrecorded).toEqual([])
  })

  it('hold the run up where they are awaited, and not elsewhere', async () => {
    for (const awaited of [true, false]) {
      const set = stage()
      const gate = Promise.withResolvers<void>()
      const hooks = { awaited, timeoutMs: 60_000, modelCallStarted: () => gate.promise }
      const run = set.runtime.run(set.agent, 'Go.', { hooks })
      const began = Promise.withResolvers<void>()
      run.events$.subscribe(({ type }) => {
        if (type === 'model_call_started') began.resolve()
      })
      await set.waitUntilSettled(began.promise)
      for (let turn = 0; turn < 50; turn++) await Promise.resolve()
      expect(set.model.requests).toHaveLength(awaited ? 0 : 1)
      gate.resolve()
      expect((await set.waitUntilSettled(run.result)).text).toBe('Done.')
    }
  })

  it('that throw, reject or never end are reported, and the run is as it would be without them', async () => {
    const plain = stage({ tools: [look], steps: looks })
    const run = plain.start()
    await plain.waitUntilSettled(run.result)
    const types = (await plain.eventsOf(run)).map(({ type }) => type)
    const bad: readonly RunHooks[] = [
      noting(() => {
        throw new Error('broken')
      }),
      { awaited: true, ...noting(() => Promise.reject(new Error('broken'))) },
      { awaited: true, timeoutMs: 5, toolStarted: () => new Promise<never>(() => {}) },
    ]
    for (const hooks of [...bad, bad]) {
      const set = stage({ tools: [look], steps: looks })
      const observed = set.runtime.run(set.agent, 'Go.', { hooks })
      expect((await set.waitUntilSettled(observed.result)).text).toBe('Done.')
      expect(checkedRun(await set.eventsOf(observed)).map(({ type }) => type)).toEqual(types)
      expect(set.reported.length).toBeGreaterThan(0)
    }
  })

  it('of the runtime are called for every run, child runs included, and by a resume', async () => {
    const asking = testTool({ name: 'look', check: () => ({ kind: 'ask' }) })
    const set = stage({ tools: [asking], steps: looks })
    const seen: string[] = []
    const of = (who: string): RunHooks => ({
      runStarted: ({ event }) => void seen.push(`${who} ${event.type}`),
      toolEnded: () => void seen.push(`${who} toolEnded`),
    })
    const { ledger, clock, agent } = set
    const first = createRuntime({ ledger, agents: [agent], hooks: of('runtime'), host: { clock } })
    const run = first.run(agent, 'Go.', { hooks: of('run') })
    const rest = await set.waitUntilSettled(run.result)
    expect(seen).toEqual(['runtime run_started', 'run run_started'])
    const second = createRuntime({ ledger, agents: [agent], host: { clock } })
    const resumed = second.resume(run.id, { hooks: of('resume') })
    await set.waitUntilSettled(resumed.approve(rest.pendingApprovals[0]!, { by: 'ada' }))
    await set.waitUntilSettled(resumed.result)
    expect(seen.slice(2)).toEqual(['resume run_resumed', 'resume toolEnded'])
  })

  it.each([
    [{ onToolEnd: () => {} }, 'toolEnded'],
    [{ toolEnded: 'log' }, 'toolEnded is a text'],
    [[{ awaited: 'yes' }], 'awaited is a text'],
    [{ timeoutMs: 0 }, 'timeoutMs is 0'],
  ])('%o are refused', (hooks, why) => {
    const set = stage()
    expect(() => set.runtime.run(set.agent, 'Go.', { hooks: hooks as never })).toThrow(why)
  })
})
