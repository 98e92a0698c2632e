import {
  createRuntime,
  defineAgent,
  memoryLedger,
  RunNotFoundError,
  type Agent,
  type Ledger,
  type RunId,
  type RunResult,
} from '@tallystick/core'
import {
  manualClock,
  sampleRunId,
  scriptedModel,
  seededRandom,
  waitUntilSettled,
  testTool,
  type ScriptedReply,
} from '@tallystick/testkit'
import { diffRuns } from '@tallystick/replay'
import { describe, expect, it } from 'vitest'

const usage = { inputTokens: 100, outputTokens: 10 }
/** Of one call of the model, at the prices below. */
const costUsd = 0.002
const look = (at: string): ScriptedReply => ({ toolCalls: [{ name: 'look', input: { at } }], usage })
const says = (text: string): ScriptedReply => ({ text, usage })

const tools = [testTool({ name: 'look', run: () => '0 left' })]
const clerk = (steps: readonly ScriptedReply[], instructions = 'Help.'): Agent =>
  defineAgent({ name: 'clerk', instructions, model: scriptedModel(steps), tools })

let runs = 0

interface Setup {
  readonly ledger: Ledger
  readonly play: (agent: Agent, input?: string) => Promise<RunResult>
  /** Forks a run after its first results. */
  readonly fork: (
    agent: Agent,
    runId: RunId,
  ) => Promise<{ readonly result: RunResult; readonly atSeq: number }>
}

function setUp(): Setup {
  const [ledger, clock] = [memoryLedger(), manualClock()]
  const prices = { 'scripted-1': { inputUsd: 10, outputUsd: 100 } }
  const runtimeOf = (agent: Agent): ReturnType<typeof createRuntime> =>
    createRuntime({ ledger, agents: [agent], prices, host: { clock, random: seededRandom(++runs) } })
  return {
    ledger,
    play: (agent, input = 'Any left?') => waitUntilSettled(clock, runtimeOf(agent).run(agent, input).result),
    async fork(agent, runId) {
      const events = await Array.fromAsync(ledger.read(runId))
      const atSeq = events.find(({ type }) => type === 'tool_results_injected')!.seq
      return { atSeq, result: await waitUntilSettled(clock, runtimeOf(agent).fork(runId, { atSeq }).result) }
    },
  }
}

describe('a run and its fork', () => {
  it('part where the fork continues with other words, and each cost what its own work cost', async () => {
    const { ledger, play, fork } = setUp()
    const { runId } = await play(clerk([look('tea'), says('Sold out.')]))
    const { result, atSeq } = await fork(clerk([says('Politely: sold out.')], 'Help politely.'), runId)
    const { shared, differences, left, right } = await diffRuns(ledger, runId, result.runId)
    expect(differences).toEqual([
      { path: 'definition.instructions', recorded: 'Help.', happened: 'Help politely.' },
    ])
    expect([shared, left.events[0]?.seq, right.events[0]?.seq]).toEqual([9, atSeq + 1, atSeq + 1])
    const tail = { reason: 'answered', turns: 1, toolCalls: 0, reused: 0, usage, costUsd }
    expect(left).toMatchObject({
      ...tail,
      text: 'Sold out.',
      own: { turns: 2, toolCalls: 1, costUsd: 2 * costUsd },
    })
    expect(right).toMatchObject({
      ...tail,
      text: 'Politely: sold out.',
      own: { turns: 1, toolCalls: 0, costUsd },
    })
  })

  it('say the same as long as they do, though the fork was asked anew, and count what was served from the record', async () => {
    const { ledger, play, fork } = setUp()
    const { runId } = await play(clerk([look('tea'), look('mugs'), says('Sold out.')]))
    const { result } = await fork(clerk([look('mugs'), says('No mugs.')]), runId)
    const { differences, left, right } = await diffRuns(ledger, runId, result.runId)
    expect(differences).toEqual([{ path: 'parts[0].text', recorded: 'Sold out.', happened: 'No mugs.' }])
    expect([left.turns, right.turns]).toEqual([0, 0])
    // What both have said counts for the fork, which has paid for it.
    expect(right.own).toMatchObject({ turns: 2, toolCalls: 1, reused: 1, costUsd: 2 * costUsd })
    expect(left.own).toMatchObject({ turns: 3, toolCalls: 2, reused: 0, costUsd: 3 * costUsd })
  })
})

describe('two tries at one task', () => {
  it('say the same, whatever their runs, replies and calls are called, when they were, and what was counted', async () => {
    const { ledger, play } = setUp()
    const [one, two] = [
      await play(
        clerk([
          { ...look('tea'), toolCalls: [{ id: 'a', name: 'look', input: { at: 'tea' } }] },
          says('No.'),
        ]),
      ),
      await play(clerk([look('tea'), { text: 'No.', usage: { inputTokens: 7, outputTokens: 7 } }])),
    ]
    const { differences, left, right } = await diffRuns(ledger, one.runId, two.runId)
    expect([differences, left.events, right.events]).toEqual([[], [], []])
  })

  it('part at what was asked, at an input of a tool, or at the place where one of them ends', async () => {
    const { ledger, play } = setUp()
    const { runId } = await play(clerk([look('tea'), says('No.')]))
    const asked = await play(clerk([look('tea'), says('No.')]), 'Any more?')
    expect((await diffRuns(ledger, runId, asked.runId)).differences).toEqual([
      { path: 'message.parts[0].text', recorded: 'Any left?', happened: 'Any more?' },
    ])
    // A key of a tool's input counts, also where events have one of that name.
    const other = await play(clerk([look('mugs'), says('No.')]))
    expect((await diffRuns(ledger, runId, other.runId)).differences).toEqual([
      { path: 'input.at', recorded: 'tea', happened: 'mugs' },
    ])
    const drained = setUp()
    const whole = await drained.play(clerk([says('No.')]))
    const events = await Array.fromAsync(drained.ledger.read(whole.runId))
    const begun = events.slice(0, 3).map((event) => ({ ...event, runId: sampleRunId(7) }))
    await drained.ledger.append(sampleRunId(7), { expectedSeq: 0, epoch: 1 }, begun, { durability: 'lazy' })
    const ended = await diffRuns(drained.ledger, sampleRunId(7), whole.runId)
    expect(ended).toMatchObject({ shared: 3, differences: [], left: { events: [], text: '' } })
    expect(ended.left).not.toHaveProperty('reason')
    expect(ended.right).toMatchObject({ reason: 'answered', text: 'No.' })
  })

  it('are refused where one is not there', async () => {
    const { ledger, play } = setUp()
    const { runId } = await play(clerk([says('No.')]))
    await expect(diffRuns(ledger, runId, sampleRunId(9))).rejects.toThrow(RunNotFoundError)
  })
})
