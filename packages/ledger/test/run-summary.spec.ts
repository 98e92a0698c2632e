// What a list tells of a run at every stage of it, from the events that the real runtime has recorded.
import {
  agentTool,
  createRuntime,
  defineAgent,
  memoryLedger,
  RunNotFoundError,
  type Ledger,
  type RunId,
} from '@tallystick/core'
import { manualClock, scriptedModel, seededRandom, testTool, type ScriptedStep } from '@tallystick/testkit'
import { deriveChildRunId } from '@tallystick/core/vocabulary'
import { foldTo, readLedgerStats, readRunSummary } from '@tallystick/ledger'
import { describe, expect, it } from 'vitest'
import { projectRun } from '../src/projection/projections.ts'
import { listSpending } from '../src/projection/run-accumulator.ts'

const usage = { inputTokens: 10, outputTokens: 1 }
const host = () => ({ clock: manualClock(), random: seededRandom(1) })

/** Drives an agent until it rests. */
async function driven(
  options: Partial<Parameters<typeof defineAgent>[0]> & { readonly steps: readonly ScriptedStep[] },
  sessionId?: string,
) {
  const { steps, ...more } = options
  const ledger = memoryLedger()
  const agent = defineAgent({ name: 'boss', instructions: 'Go.', model: scriptedModel(steps), ...more })
  const runtime = createRuntime({ ledger, agents: [agent], host: host() })
  const { runId } = await runtime.run(agent, 'Go.', sessionId === undefined ? {} : { sessionId }).result
  return { ledger, runId }
}

/** What a list says of a run after its last event, or after its last one of a type. */
async function toldAfter(ledger: Ledger, runId: RunId, type?: string) {
  const events = await Array.fromAsync(ledger.read(runId))
  const { seq } = (type === undefined ? events : events.filter((event) => event.type === type)).at(-1)!
  const record = await projectRun(ledger, runId, seq)
  if (record === undefined || record.summary.status === 'unreadable') throw new Error('It cannot be read.')
  return { ...record, summary: record.summary }
}

describe('a run that waits', () => {
  it('tells for what: a person, the outside, its child runs', async () => {
    const pay = testTool({ name: 'pay', effect: 'write', check: () => ({ kind: 'ask' }) })
    const job = testTool({
      name: 'job',
      run: (_run, report) => {
        report.defer('job-7')
        return 'not heard'
      },
    })
    const worker = defineAgent({
      ...{ name: 'worker', description: 'Works.', instructions: 'Work.', tools: [pay] },
      model: scriptedModel([{ toolCalls: [{ name: 'pay', input: {} }], usage }]),
    })
    const call = (name: string, input: object = {}) => ({ name, input: input as never })
    const steps = [{ toolCalls: [call('worker', { task: 'Do it.' }), call('job'), call('pay')], usage }]
    const { ledger, runId } = await driven({ steps, tools: [pay, job, agentTool(worker)] }, 'ann')
    const { summary } = await toldAfter(ledger, runId)
    const idOf = (name: string) => {
      const { approvals, deferred, children } = summary.waits
      return [...approvals, ...deferred, ...children].find((each) => each.name === name)!.toolCallId
    }
    const child = deriveChildRunId(runId, idOf('worker'))
    expect(summary).toMatchObject({
      status: 'suspended',
      started: [],
      isStreaming: false,
      childRunIds: [child],
    })
    expect(summary.waits).toEqual({
      approvals: [{ toolCallId: idOf('pay'), name: 'pay' }],
      deferred: [{ toolCallId: idOf('job'), name: 'job', externalId: 'job-7' }],
      children: [{ toolCallId: idOf('worker'), name: 'worker', runId: child }],
    })
    expect(summary).not.toHaveProperty('reason')
    expect(summary).not.toHaveProperty('hasDetail')
    expect(summary).toMatchObject({ sessionId: 'ann', turns: 1 })
    // While its calls are at work.
    const { summary: working } = await toldAfter(ledger, runId, 'tool_started')
    expect(working.status).toBe('unfinished')
    expect(working.started.length).toBeGreaterThan(0)
    expect(working.waits.approvals).toHaveLength(1)
  })

  it('tells which limit it has met, and what it was', async () => {
    const look = testTool({ name: 'look' })
    const steps = [{ toolCalls: [{ name: 'look', input: {} }], usage }]
    const { ledger, runId } = await driven({ steps, tools: [look], limits: { maxTurns: 1, onLimit: 'ask' } })
    const { summary } = await toldAfter(ledger, runId, 'limit_reached')
    expect(summary).toMatchObject({ status: 'suspended', waits: { limit: { limit: 'maxTurns', max: 1 } } })
    expect(summary.waits).toStrictEqual({
      ...{ approvals: [], deferred: [], children: [] },
      limit: { limit: 'maxTurns', max: 1 },
    })
  })
})

describe('a run on its way', () => {
  it('tells whether its model speaks, and which calls are at work', async () => {
    const look = testTool({ name: 'look' })
    const steps = [
      { toolCalls: [{ name: 'look', input: {} }], usage },
      { text: 'Done.', usage },
    ]
    const { ledger, runId } = await driven({ steps, tools: [look] })
    const speaking = (await toldAfter(ledger, runId, 'model_call_started')).summary
    expect(speaking).toMatchObject({ status: 'unfinished', isStreaming: true, started: [] })
    const working = (await toldAfter(ledger, runId, 'tool_started')).summary
    expect(working).toMatchObject({ status: 'unfinished', isStreaming: false, started: [{ name: 'look' }] })
    expect(Object.keys(working.started[0]!)).toEqual(['toolCallId', 'name'])
    expect(working).not.toHaveProperty('sessionId')
  })
})

describe('a run that has ended', () => {
  it('tells why, what it took, and of what session it is', async () => {
    const { ledger, runId } = await driven({ steps: [{ text: 'Done.', usage }] }, 'ann')
    const { startedAt, lastAt, seq } = (await readRunSummary(ledger, runId)) as never
    expect(await readRunSummary(ledger, runId)).toStrictEqual({
      ...{ runId, status: 'done', seq, turn: 1, startedAt, lastAt, agent: 'boss', agents: ['boss'] },
      ...{ sessionId: 'ann', sessionPlace: 1, reason: 'answered', isStreaming: false, started: [] },
      waits: { approvals: [], deferred: [], children: [] },
      ...{ calls: [], lastCalls: [], failedAttempts: 0, childRunIds: [], turns: 1, toolCalls: 0, usage },
      children: { runs: 0, turns: 0, toolCalls: 0 },
    })
  })

  it.each([
    ['answered', 'done', { steps: [{ text: 'Done.' }] }],
    [
      'stopped',
      'done',
      {
        steps: [{ toolCalls: [{ name: 'look', input: {} }] }],
        ...{ tools: [testTool({ name: 'look' })], stopWhen: () => true },
      },
    ],
    ['refused', 'failed', { steps: [{ stopReason: 'refused' as const }] }],
    ['turn_limit', 'failed', { steps: [], limits: { maxTurns: 0, onLimit: 'stop' as const } }],
    ['model_failed', 'failed', { steps: [{ fail: 'authentication' as const }] }],
  ])('as %s is %s', async (reason, status, options) => {
    const { ledger, runId } = await driven(options)
    const state = await foldTo(ledger, runId)
    const summary = await readRunSummary(ledger, runId)
    expect(summary).toMatchObject({ status, reason })
    expect('hasDetail' in summary && summary.hasDetail).toBe('detail' in state && state.detail !== undefined)
  })

  it('counts for its session what its child runs used', async () => {
    const worker = defineAgent({
      ...{
        name: 'worker',
        description: 'Works.',
        instructions: 'Work.',
        tools: [testTool({ name: 'look' })],
      },
      model: scriptedModel([
        { toolCalls: [{ name: 'look', input: {} }], usage },
        { text: 'Done.', usage },
      ]),
    })
    const steps = [
      { toolCalls: [{ name: 'worker', input: { task: 'Do it.' } }], usage },
      { text: 'Done.', usage },
    ]
    const { ledger, runId } = await driven({ steps, tools: [agentTool(worker)] }, 'ann')
    const { summary, accumulated } = await toldAfter(ledger, runId, 'run_finished')
    expect(summary).toMatchObject({
      ...{ turns: 2, toolCalls: 1, children: { runs: 1, turns: 2, toolCalls: 1 } },
      usage: { inputTokens: 40, outputTokens: 4 },
    })
    const { sessions } = await readLedgerStats(ledger, { since: 0, maxListed: 1 })
    expect(sessions).toMatchObject([{ turns: 4, toolCalls: 2, usage: { inputTokens: 40 }, unpriced: 1 }])
    // What the child spent is on the child's own line.
    expect(listSpending(accumulated!)).toMatchObject([
      { agent: 'boss', calls: 2, usage: { inputTokens: 20 } },
    ])
  })

  it('is not there for a reader from whom it was taken after it was found', async () => {
    const { ledger, runId } = await driven({ steps: [{ text: 'Done.' }] })
    const emptied: Ledger = { ...ledger, read: async function* () {} }
    await expect(foldTo(emptied, runId)).rejects.toThrow(RunNotFoundError)
    await expect(readRunSummary(emptied, runId)).rejects.toThrow(RunNotFoundError)
    const broken: Ledger = {
      ...ledger,
      // oxlint-disable-next-line require-yield -- it fails first
      read: async function* () {
        throw new TypeError('a mistake')
      },
    }
    await expect(readRunSummary(broken, runId)).rejects.toThrow('a mistake')
  })
})
