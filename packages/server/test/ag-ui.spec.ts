import { HttpAgent, type RunAgentParameters } from '@ag-ui/client'
import {
  agentTool,
  defineAgent,
  ProviderError,
  type Agent,
  type Model,
  type RunState,
} from '@tallystick/core'
import { scriptedModel, testTool, sampleRunId } from '@tallystick/testkit'
import { concat, of, throwError } from 'rxjs'
import { beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest'
import { createAgUiTable } from '../src/ag-ui/map.ts'
import { toApprovalId } from '../src/stream/run-moves.ts'
import { answerOf, openOffice, payingAgent, tellingAgent, type Office } from './kit/office.ts'

function agentOf(office: Office, name: string, as = 'ada'): HttpAgent {
  return new HttpAgent({
    url: `${office.listening.url}/ag-ui/${name}`,
    headers: { authorization: `Bearer ${as}` },
    threadId: 't1',
  })
}

/** Runs an agent, and answers how its run ended. */
async function outcomeOf(agent: HttpAgent, parameters: RunAgentParameters = {}): Promise<unknown> {
  let ended: unknown
  await agent.runAgent(parameters, { onRunFinishedEvent: ({ event }) => void (ended = event) })
  return ended
}

// The client prints each refusal that it rejects with.
beforeEach(() => {
  const print = vi.spyOn(console, 'error').mockImplementation(() => {})
  onTestFinished(() => print.mockRestore())
})

interface Interrupted {
  readonly outcome: { readonly interrupts: readonly { readonly id: string; readonly toolCallId: string }[] }
}

/** An agent whose model fails while it writes a call, and has used all tokens by then. */
function brokenOffAgent(): Agent {
  const failure = { class: 'overloaded', message: 'Too much to do.', retryable: true } as const
  const model: Model = {
    provider: 'test',
    api: 'test',
    modelId: 'breaks-off',
    stream: () =>
      concat(
        of(
          { type: 'model_text', part: 0, text: 'I pay' } as const,
          { type: 'model_tool_input', part: 1, name: 'pay', text: '{"us' } as const,
          { type: 'model_usage', usage: { inputTokens: 9_990, outputTokens: 10 } } as const,
        ),
        throwError(() => new ProviderError(failure)),
      ),
  }
  return defineAgent({
    ...{ name: 'office', instructions: 'Pay.', model, tools: [testTool({ name: 'pay' })] },
    limits: { maxTotalTokens: 10_000, onLimit: 'ask' },
  })
}

describe('an agent of AG-UI', () => {
  it('answers in one thread, run after run', async () => {
    const office = await openOffice({ agents: [tellingAgent('teller', 'One.', 'Two.')] })
    const agent = agentOf(office, 'teller')
    agent.addMessage({ id: 'm1', role: 'user', content: 'First?' })
    expect(await outcomeOf(agent)).toMatchObject({ outcome: { type: 'success' }, result: { text: 'One.' } })
    agent.addMessage({ id: 'm2', role: 'user', content: [{ type: 'text', text: 'Second?' }] })
    const started: unknown[] = []
    await agent.runAgent({}, { onRunStartedEvent: ({ event }) => void started.push(event) })
    expect(agent.messages.map(({ role, content }) => [role, content])).toEqual([
      ['user', 'First?'],
      ['assistant', 'One.'],
      ['user', [{ type: 'text', text: 'Second?' }]],
      ['assistant', 'Two.'],
    ])
    const { runs } = await answerOf(await office.send('/runs?sessionId=t1'))
    expect(runs).toHaveLength(2)
    const [, { runId: parentRunId }] = runs as [unknown, { readonly runId: string }]
    expect(started).toMatchObject([{ threadId: 't1', parentRunId }])
  })

  it('is interrupted by a question, and continues with the answer', async () => {
    const office = await openOffice()
    const agent = agentOf(office, 'office')
    agent.addMessage({ id: 'm1', role: 'user', content: 'Pay.' })
    const { outcome } = (await outcomeOf(agent)) as Interrupted
    expect(outcome).toMatchObject({
      type: 'interrupt',
      interrupts: [{ reason: 'tool_approval', message: 'it is money', metadata: { input: { usd: 5 } } }],
    })
    const resume = [
      {
        interruptId: outcome.interrupts[0]!.id,
        status: 'resolved',
        payload: { approved: true, input: { usd: 4 } },
      },
    ] as const
    expect(await outcomeOf(agent, { resume: [...resume] })).toMatchObject({
      outcome: { type: 'success' },
      result: { text: 'Payment: 4 USD paid' },
    })
    expect(agent.messages.at(-1)).toMatchObject({ role: 'assistant', content: 'Payment: 4 USD paid' })
    const { runs } = (await answerOf(await office.send('/runs?sessionId=t1'))) as unknown as {
      runs: readonly { runId: string }[]
    }
    const events = (await answerOf(await office.send(`/runs/${runs[0]?.runId}/events`)))['events']
    expect(events).toContainEqual(expect.objectContaining({ type: 'approval_decided', by: 'ada' }))
  })

  it('is interrupted by the question of its child run, and follows the run on to its end', async () => {
    const work = payingAgent('clerk')
    const call = { toolCalls: [{ name: 'clerk', input: { task: 'Pay.' } }] }
    const model = scriptedModel([call, { text: 'All is paid.' }])
    const boss = defineAgent({ name: 'boss', instructions: 'Ask.', model, tools: [agentTool(work)] })
    const office = await openOffice({ agents: [boss, work] })
    const agent = agentOf(office, 'boss')
    agent.addMessage({ id: 'm1', role: 'user', content: 'Pay.' })
    const { outcome } = (await outcomeOf(agent)) as Interrupted
    expect(outcome.interrupts).toMatchObject([{ reason: 'tool_approval', metadata: { name: 'pay' } }])
    const resume = [
      { interruptId: outcome.interrupts[0]!.id, status: 'resolved', payload: { approved: true } },
    ] as const
    expect(await outcomeOf(agent, { resume: [...resume] })).toMatchObject({
      result: { text: 'All is paid.' },
    })
  })

  it('denies what a client gives up, and refuses what says nothing', async () => {
    const office = await openOffice()
    const agent = agentOf(office, 'office')
    agent.addMessage({ id: 'm1', role: 'user', content: 'Pay.' })
    const { outcome } = (await outcomeOf(agent)) as Interrupted
    const { id: interruptId } = outcome.interrupts[0]!
    const unclear = [{ interruptId, status: 'resolved', payload: { sure: true } }] as const
    await expect(agent.runAgent({ resume: [...unclear] })).rejects.toThrow(/400/)
    await agent.runAgent({ resume: [{ interruptId, status: 'cancelled' }] })
    expect(agent.messages.at(-1)?.content).toContain('given up')
  })

  it('takes text back that was void, and keeps what the client has', async () => {
    const model = scriptedModel([
      { text: 'Half of it', fail: 'overloaded', retryAfterMs: 1 },
      { text: 'All of it.' },
    ])
    const office = await openOffice({
      agents: [defineAgent({ name: 'teller', instructions: 'Answer.', model })],
    })
    const agent = agentOf(office, 'teller')
    agent.addMessage({ id: 'm1', role: 'user', content: 'Well?' })
    await agent.runAgent()
    expect(agent.messages.map(({ content }) => content)).toEqual(['Well?', 'All of it.'])
  })

  it('is interrupted by a limit while the model wrote a call, which ends before that', async () => {
    const office = await openOffice({ agents: [brokenOffAgent()] })
    const agent = agentOf(office, 'office')
    agent.addMessage({ id: 'm1', role: 'user', content: 'Pay.' })
    const types: string[] = []
    const { outcome } = await new Promise<Interrupted>((resolve, reject) => {
      const onEvent = ({ event }: { event: { type: string } }): void => void types.push(event.type)
      const onRunFinishedEvent = ({ event }: { event: unknown }): void => resolve(event as Interrupted)
      agent.runAgent({}, { onEvent, onRunFinishedEvent }).catch(reject)
    })
    expect(outcome).toEqual({
      type: 'interrupt',
      interrupts: [{ id: 'maxTotalTokens', reason: 'limit_reached' }],
    })
    expect(types).toEqual([
      'RUN_STARTED',
      'TEXT_MESSAGE_START',
      'TEXT_MESSAGE_CONTENT',
      'TEXT_MESSAGE_END',
      'TOOL_CALL_START',
      'TOOL_CALL_ARGS',
      'TOOL_CALL_END',
      'RUN_FINISHED',
    ])
  })

  it('of another caller is neither continued nor decided', async () => {
    const office = await openOffice()
    const adas = agentOf(office, 'office')
    adas.addMessage({ id: 'm1', role: 'user', content: 'Pay.' })
    const { outcome } = (await outcomeOf(adas)) as Interrupted
    const bobs = agentOf(office, 'office', 'bob')
    bobs.addMessage({ id: 'm1', role: 'user', content: 'Pay.' })
    await expect(bobs.runAgent()).rejects.toThrow(/403/)
    const resume = [
      { interruptId: outcome.interrupts[0]!.id, status: 'resolved', payload: { approved: true } },
    ] as const
    const refused = agentOf(office, 'office', 'bob').runAgent({ resume: [...resume] })
    await expect(refused).rejects.toThrow(/404.*Run t1 is not/)
  })
})

const runId = sampleRunId(1)

/** The interrupts by which a client of AG-UI learns what a run waits for. */
function interruptsOf(waits: object): unknown {
  const state = { runId } as unknown as RunState
  const table = createAgUiTable({ threadId: 't1' })
  const [ended] =
    table.run_waits?.({ type: 'run_waits', state, waits: { approvals: [], deferred: [], ...waits } }) ?? []
  expect(ended).toMatchObject({ type: 'RUN_FINISHED', threadId: 't1', runId, outcome: { type: 'interrupt' } })
  return (ended as { outcome: { interrupts: unknown } } | undefined)?.outcome.interrupts
}

it('a run that waits for an approval interrupts with the question, and with what an answer may say', () => {
  const approval = {
    ...{ runId, toolCallId: 'call_1', attempt: 1, inputDigest: 'd1', name: 'pay', input: { usd: 5 } },
  }
  const interrupt = {
    ...{ id: toApprovalId(approval), reason: 'tool_approval', toolCallId: 'call_1' },
    message: 'May pay run with this input?',
    metadata: { name: 'pay', input: { usd: 5 } },
    responseSchema: {
      type: 'object',
      properties: { approved: { type: 'boolean' }, reason: { type: 'string' }, input: { type: 'object' } },
      required: ['approved'],
    },
  }
  expect(interruptsOf({ approvals: [approval] })).toEqual([interrupt])
  expect(interruptsOf({ approvals: [{ ...approval, reason: 'It is money.' }] })).toEqual([
    { ...interrupt, message: 'It is money.' },
  ])
})

it('a run that waits for another system interrupts with the call, and one at its limit with the limit', () => {
  const call = { toolCallId: 'call_2', name: 'ship', input: { to: 'Ada' }, externalId: 'job 7' }
  expect(interruptsOf({ deferred: [call], limit: 'maxTurns' })).toEqual([
    {
      ...{ id: 'call_2', reason: 'deferred_call', toolCallId: 'call_2' },
      metadata: { name: 'ship', input: { to: 'Ada' }, externalId: 'job 7' },
    },
    { id: 'maxTurns', reason: 'limit_reached' },
  ])
})
