import {
  type Agent,
  createRuntime,
  defineAgent,
  type Ledger,
  memoryLedger,
  type RunId,
  type RuntimeEvent,
} from '@tallystick/core'
import { buildForkedEvents, listReachableAgents } from '@tallystick/core/internal'
import {
  copyPrefix,
  manualClock,
  sampleMessage,
  sampleRunId,
  scriptedModel,
  testTool,
  waitUntilSettled,
} from '@tallystick/testkit'
import { replayRun, type ReplayReport } from '@tallystick/replay'
import { describe, expect, it } from 'vitest'

const usage = { inputTokens: 100, outputTokens: 10 }

async function ledgerOf(events: readonly RuntimeEvent[]): Promise<Ledger> {
  const ledger = memoryLedger()
  await copyPrefix(events, ledger)
  return ledger
}

async function replayed(
  events: readonly RuntimeEvent[],
  agent: Agent<unknown>,
  onEvents?: (count: number) => void,
): Promise<ReplayReport> {
  const agents = new Map(listReachableAgents(agent).map((each) => [each.name, each]))
  const { runId } = events[0] as RuntimeEvent
  return await replayRun(await ledgerOf(events), runId, (name) => agents.get(name)!, {
    definitions: 'recorded',
    ...(onEvents && { onEvents }),
  })
}

/** Plays an agent that looks twice and then answers; returns its events. */
async function looked(): Promise<{
  readonly events: readonly RuntimeEvent[]
  readonly agent: Agent<unknown>
}> {
  const [clock, ledger] = [manualClock(), memoryLedger()]
  const look = { name: 'look', input: {} }
  const agent = defineAgent<unknown>({
    ...{ name: 'looker', instructions: 'Look.', tools: [testTool({ name: 'look' })] },
    model: scriptedModel([
      { toolCalls: [look, look], usage },
      { text: 'Seen.', usage },
    ]),
  })
  const run = createRuntime({ ledger, host: { clock } }).run(agent, 'Go.')
  await waitUntilSettled(clock, run.result)
  return { events: await Array.fromAsync(ledger.read(run.id)), agent }
}

describe('a run that got an input, driven again', () => {
  it('differs at the input where the run had not rested before, though the record says so', async () => {
    const { events, agent } = await looked()
    const first = events.findIndex(({ type }) => type === 'tool_started')
    const [shared, second] = [events.slice(0, first + 1), events[first + 1] as RuntimeEvent]
    expect([second.type, second.seq]).toEqual(['tool_started', first + 2])
    const { runId, seq, epoch, at, turn } = second
    const input = {
      type: 'input_received',
      delivery: 'steer',
      receipt: 'r',
      message: sampleMessage('Stop.'),
      v: 1,
    }
    const steered = { ...input, runId, seq, epoch, at, turn } as RuntimeEvent
    expect(await replayed([...shared, second, { ...steered, seq: seq + 1 }], agent)).not.toHaveProperty(
      'divergence',
    )
    expect((await replayed([...shared, steered], agent)).divergence).toMatchObject({
      ...{ seq, recorded: steered },
      differences: [{ path: 'type', recorded: 'input_received', happened: 'tool_started' }],
    })
    const taken = { type: 'run_resumed', why: 'crash', inDoubt: [], v: 1 }
    // The next process found all results, and the one before it owed their place in the history.
    const last = events.findLastIndex(({ type }) => type === 'tool_result')
    const ended = { ...taken, runId, seq: last + 2, epoch: epoch + 1, at, turn } as unknown as RuntimeEvent
    expect((await replayed([...events.slice(0, last + 1), ended], agent)).divergence?.differences).toEqual([
      { path: 'type', recorded: 'run_resumed', happened: 'tool_results_injected' },
    ])
    // Another process takes the run over: the controller of the one before owed the call all the same.
    const resumed = { ...taken, runId, seq, epoch: epoch + 1, at, turn } as unknown as RuntimeEvent
    expect((await replayed([...shared, resumed], agent)).divergence?.differences).toEqual([
      { path: 'type', recorded: 'run_resumed', happened: 'tool_started' },
    ])
  })
})

describe('a fork that no process has driven', () => {
  it('is given whole, as the run that it shares', async () => {
    const { events, agent } = await looked()
    const injected = events.findIndex(({ type }) => type === 'tool_results_injected')
    const runId: RunId = sampleRunId(7)
    const fork = buildForkedEvents(events.slice(0, injected + 1), { runId })
    const received: number[] = []
    expect(await replayed(fork, agent, (count) => void received.push(count))).toEqual({
      ...{ runId, events: fork.length },
    })
    expect(received).toEqual([fork.length])
  })
})

describe('a record that breaks off', () => {
  it('differs where its last event cannot follow from what is said to have caused it', async () => {
    const { events, agent } = await looked()
    const at = events.findIndex(({ type }) => type === 'assistant_started')
    const [recorded, started] = [events.slice(0, at), events[at] as RuntimeEvent]
    expect(await replayed([...recorded, started], agent)).not.toHaveProperty('divergence')
    const forged = { ...started, cause: 'model_text' } as RuntimeEvent
    expect((await replayed([...recorded, forged], agent)).divergence).toEqual({
      ...{ seq: at + 1, recorded: forged, differences: [] },
    })
  })
})

describe('a run that began with what was said before', () => {
  it('comes out the same as far as it is on record, though that ends before its input', async () => {
    const [clock, ledger] = [manualClock(), memoryLedger()]
    const agent = defineAgent<unknown>({
      ...{ name: 'talker', instructions: 'Talk.' },
      model: scriptedModel([
        { text: 'Hello.', usage },
        { text: 'Bye.', usage },
      ]),
    })
    const runtime = createRuntime({ ledger, host: { clock } })
    await waitUntilSettled(clock, runtime.run(agent, 'Hi.', { sessionId: 's' }).result)
    const { runId } = await waitUntilSettled(clock, runtime.run(agent, 'Bye.', { sessionId: 's' }).result)
    const events = await Array.fromAsync(ledger.read(runId))
    expect(events.slice(0, 3).map(({ type }) => type)).toEqual([
      ...['run_started', 'history_carried', 'input_received'],
    ])
    for (const count of [1, 2, 3]) {
      expect(await replayed(events.slice(0, count), agent)).toEqual({ runId, events: count })
    }
  })
})

describe('a run of two handoffs', () => {
  it('comes out the same in the words on record, each agent in its own', async () => {
    const chain = (words: string): Agent<unknown> => {
      const asks = (to: string) =>
        scriptedModel([{ toolCalls: [{ name: `transfer_to_${to}`, input: {} }], usage }])
      const last = defineAgent<unknown>({
        ...{ name: 'last', description: 'Ends.', instructions: `${words} end.` },
        model: scriptedModel([{ text: 'Done.', usage }]),
      })
      const middle = defineAgent<unknown>({
        ...{ name: 'middle', description: 'Passes on.', instructions: `${words} pass on.` },
        ...{ model: asks('last'), handoffs: [last] },
      })
      return defineAgent<unknown>({
        ...{ name: 'first', instructions: `${words} begin.`, model: asks('middle'), handoffs: [middle] },
      })
    }
    const [clock, ledger] = [manualClock(), memoryLedger()]
    const run = createRuntime({ ledger, host: { clock } }).run(chain('Please'), 'Go.')
    expect(await waitUntilSettled(clock, run.result)).toMatchObject({ reason: 'answered', agent: 'last' })
    const events = await Array.fromAsync(ledger.read(run.id))
    expect(await replayed(events, chain('Do'))).toEqual({ runId: run.id, events: events.length })
  })
})
