import { describe, expect, it } from 'vitest'
import * as z from 'zod'
import {
  type Agent,
  type AgentOptions,
  ConfigurationError,
  createRuntime,
  defineAgent,
  foldedHistory,
  handBack,
  handoff,
  memoryLedger,
  type RunState,
  joinText,
} from '@tallystick/core'
import { evolve } from '@tallystick/core/machine'
import { checkTranscript, manualClock, scriptedModel, waitUntilSettled, testTool } from '@tallystick/testkit'
import { checkedRun, ofType, recorded, stage } from './stage.ts'

const transfer = (to: string): { readonly name: string; readonly input: object } => ({
  name: `transfer_to_${to}`,
  input: { reason: 'They know more.' },
})

/** An agent that answers, and says so. */
function expert(
  name: string,
  text = `I am ${name}.`,
): Agent & { readonly model: ReturnType<typeof scriptedModel> } {
  const model = scriptedModel([{ text }, { text }], `model-of-${name}`)
  return {
    ...defineAgent({ name, description: `Knows all about ${name}.`, instructions: `Be ${name}.`, model }),
    model,
  }
}

describe('a handoff', () => {
  it('is a tool call, after which the other agent continues with its own model, instructions and tools', async () => {
    const billing = expert('billing')
    const { play, eventsOf, model } = stage({
      steps: [{ toolCalls: [transfer('billing')] as never }],
      handoffs: [billing],
    })
    const result = await play('Where is my invoice?')
    expect(result).toMatchObject({ reason: 'answered', text: 'I am billing.', agent: 'billing', turns: 2 })
    expect(model.requests[0]?.tools).toEqual([
      {
        name: 'transfer_to_billing',
        description: 'Knows all about billing.',
        inputSchema: {
          type: 'object',
          properties: { reason: { type: 'string', description: 'Why you hand over, in one sentence.' } },
          additionalProperties: false,
        },
      },
    ])
    const [request] = billing.model.requests
    expect(request).toMatchObject({ instructions: 'Be billing.', tools: [] })
    expect(request?.messages.map(({ role }) => role)).toEqual(['user', 'assistant', 'tool'])
    const events = checkedRun(await eventsOf(result.runId))
    expect(ofType(events, 'agent_handed_off')).toMatchObject([
      { from: 'agent', to: 'billing', turn: 1, definition: { instructions: 'Be billing.' } },
    ])
    expect(ofType(events, 'model_call_started').map(({ model: { modelId } }) => modelId)).toEqual([
      'scripted-1',
      'model-of-billing',
    ])
  })

  it.each<[string, Partial<AgentOptions>, Parameters<typeof handoff>[1], object]>([
    [
      'an agent that describes itself',
      { description: 'Bills.' },
      {},
      { name: 'transfer_to_the_billing_desk_2', description: 'Bills.' },
    ],
    [
      'an agent that does not',
      {},
      {},
      { description: 'Hands the conversation over to The Billing-Desk 2, who goes on with it.' },
    ],
    [
      'words of its own',
      { description: 'Bills.' },
      { toolName: 'escalate', description: 'Use it for money.' },
      { name: 'escalate', description: 'Use it for money.' },
    ],
  ])('is offered as a tool that only hands over, with %s', (_name, own, options, tool) => {
    const agent = defineAgent({
      ...{ name: 'The Billing-Desk 2', instructions: 'Bill.', model: scriptedModel([]) },
      ...own,
    })
    const target = handoff(agent, options)
    expect(target).toMatchObject({ to: agent.name, tool: { ...tool, handoff: { to: agent.name } } })
    expect(target.tool).toMatchObject({ effect: 'read', recovery: 'rerun' })
  })

  it('shows the next agent what its filter makes of the past, which is on record', async () => {
    const billing = expert('billing')
    const { play, eventsOf } = stage({
      steps: [{ text: 'One moment.', toolCalls: [transfer('billing')] as never }],
      handoffs: [handoff(billing, { filter: foldedHistory })],
    })
    const { runId } = await play('Where is my invoice?')
    const shown = billing.model.requests[0]?.messages ?? []
    expect(shown).toHaveLength(1)
    expect(joinText(shown[0]?.role === 'user' ? shown[0].parts : [])).toBe(
      'What was said and done before you took over:\n' +
        'User: Where is my invoice?\n' +
        'Assistant: One moment.\n' +
        'Assistant called transfer_to_billing with {"reason":"They know more."}\n' +
        'transfer_to_billing answered (success): The conversation is handed over to billing, who goes on from here.',
    )
    const [handed] = ofType(checkedRun(await eventsOf(runId)), 'agent_handed_off')
    expect(handed?.messages).toEqual(shown)
  })

  it('rejects where its filter fails, in the words of the filter where those are of this library', async () => {
    const own = new ConfigurationError('There is no past to show.')
    const other = new TypeError('no past')
    const failing = (error: Error) =>
      stage({
        steps: [{ toolCalls: [transfer('billing')] as never }],
        handoffs: [
          handoff(expert('billing'), {
            filter: () => {
              throw error
            },
          }),
        ],
      }).play()
    await expect(failing(own)).rejects.toMatchObject({
      cause: own,
      message: expect.stringMatching(/^There is no past to show\. Run .* is on record up to here/),
    })
    await expect(failing(other)).rejects.toMatchObject({
      code: own.code,
      cause: other,
      message: expect.stringMatching(
        /^The filter of the handoff to billing threw: no past\..* Run .* is on record up to here.*: continue it with resume/,
      ),
    })
  })

  it('goes round between agents that name each other, until the limit of turns', async () => {
    const ping = Array.from({ length: 9 }, () => ({ toolCalls: [transfer('b')] as never }))
    const pong = Array.from({ length: 9 }, () => ({ toolCalls: [transfer('a')] as never }))
    const a: Agent = defineAgent({
      ...{ name: 'a', instructions: 'A.', model: scriptedModel([...ping.slice(0, 3), { text: 'Enough.' }]) },
      ...{ handoffs: () => [b], limits: { maxTurns: 6 } },
    })
    const b: Agent = defineAgent({
      ...{
        name: 'b',
        instructions: 'B.',
        model: scriptedModel([...pong.slice(0, 2), { text: 'Enough, says b.' }]),
      },
      handoffs: () => [a],
    })
    const clock = manualClock()
    const ledger = memoryLedger()
    const runtime = createRuntime({ ledger, agents: [a], host: { clock } })
    const run = runtime.run(a, 'Go.')
    const result = await waitUntilSettled(clock, run.result)
    expect(result).toMatchObject({ reason: 'turn_limit', agent: 'b', text: 'Enough, says b.' })
    const events = checkedRun(await recorded(ledger, run.id))
    expect(ofType(events, 'agent_handed_off').map(({ to }) => to)).toEqual(['b', 'a', 'b', 'a', 'b'])
  })

  it('takes place once a reply: a second one in the same reply is refused', async () => {
    const { play, eventsOf } = stage({
      steps: [{ toolCalls: [transfer('billing'), transfer('sales')] as never }],
      handoffs: [expert('billing'), expert('sales')],
    })
    const { runId, agent } = await play()
    expect(agent).toBe('billing')
    const results = ofType(checkedRun(await eventsOf(runId)), 'tool_result')
    expect(results.map(({ name, outcome }) => `${name} ${outcome}`).toSorted()).toEqual([
      ...['transfer_to_billing success', 'transfer_to_sales skipped'],
    ])
  })

  it('names the first handoff of the reply to a second one, and does not say that it took place', async () => {
    const second = 'transfer_to_sales'
    const { play, eventsOf, model } = stage({
      steps: [
        {
          toolCalls: [
            { name: 'transfer_to_billing', input: {} },
            { name: second, input: {} },
          ],
        },
        { toolCalls: [{ name: second, input: {} }] },
      ],
      handoffs: [handoff(expert('billing'), { input: z.object({ invoice: z.string() }) }), expert('sales')],
    })
    const { runId, agent } = await play()
    expect(agent).toBe('sales')
    expect(model.requests).toHaveLength(2)
    const [unfit, skipped] = ofType(checkedRun(await eventsOf(runId)), 'tool_result')
    expect(unfit).toMatchObject({ name: 'transfer_to_billing', outcome: 'invalid_input' })
    expect(skipped).toMatchObject({ name: second, outcome: 'skipped' })
    expect(joinText(skipped!.content)).toBe(
      'A reply can hand the conversation over once: only its first handoff counts, which is the call of transfer_to_billing. Nothing was run; ask for transfer_to_sales alone if it is still needed.',
    )
  })

  it('waits for a person where the policy of the agent says so, and a denial keeps the agent', async () => {
    const {
      start,
      waitUntilSettled: settled,
      eventsOf,
    } = stage({
      steps: [{ toolCalls: [transfer('billing')] as never }, { text: 'Then I do it myself.' }],
      handoffs: [expert('billing')],
      approval: ({ name }) => (name.startsWith('transfer_to') ? 'ask' : 'run'),
    })
    const run = start()
    const [pending] = (await settled(run.result)).pendingApprovals
    await settled(run.deny(pending!.toolCallId, { by: 'ada', reason: 'Billing is closed.' }))
    expect(await settled(run.result)).toMatchObject({ agent: 'agent', text: 'Then I do it myself.' })
    expect(ofType(checkedRun(await eventsOf(run)), 'agent_handed_off')).toEqual([])
  })

  it('is found by any process that resumes the run, under the name of the active agent', async () => {
    const tool = testTool({ name: 'pay', effect: 'write', check: () => ({ kind: 'ask' }) })
    const model = scriptedModel([{ toolCalls: [{ name: 'pay', input: {} }] }, { text: 'Paid.' }])
    const billing = defineAgent({ name: 'billing', instructions: 'Bill.', model, tools: [tool] })
    const first = stage({ steps: [{ toolCalls: [transfer('billing')] as never }], handoffs: [billing] })
    const run = first.start()
    const [pending] = (await first.waitUntilSettled(run.result)).pendingApprovals
    // Another process: it knows the first agent, and through it the second.
    const other = createRuntime({ ledger: first.ledger, agents: [first.agent], host: { clock: first.clock } })
    const resumed = other.resume(run.id)
    await first.waitUntilSettled(resumed.approve(pending!.toolCallId, { by: 'ada' }))
    expect(await first.waitUntilSettled(resumed.result)).toMatchObject({ agent: 'billing', text: 'Paid.' })
  })

  it('back to the caller of the run ends it as handed_back, and the history can continue', async () => {
    const { play, eventsOf } = stage({
      steps: [{ text: 'I get somebody.', toolCalls: [transfer('support_desk')] as never }],
      handoffs: [handBack('Support desk', { description: 'Use it when the user asks for a person.' })],
    })
    const result = await play()
    expect(result).toMatchObject({ status: 'done', reason: 'handed_back', detail: 'Support desk' })
    const events = checkedRun(await eventsOf(result.runId))
    expect(ofType(events, 'tool_result')).toMatchObject([
      { outcome: 'success', content: [{ text: 'The conversation goes to Support desk.' }] },
    ])
    const state = events.reduce<RunState | undefined>(evolve, undefined)
    expect(checkTranscript(state ? state.history.store.messages : [])).toEqual([])
  })

  it('to an agent that the code does not name any more stops the driver and loses nothing', async () => {
    const hold = { kind: 'ask' } as const
    const tool = testTool({ name: 'look', check: () => hold })
    const calls = [{ name: 'look', input: {} }, transfer('billing')] as never
    const first = stage({ steps: [{ toolCalls: calls }], handoffs: [expert('billing')], tools: [tool] })
    const run = first.start()
    const [pending] = (await first.waitUntilSettled(run.result)).pendingApprovals
    const without = defineAgent({ name: 'agent', instructions: 'Act.', model: first.model, tools: [tool] })
    const other = createRuntime({ ledger: first.ledger, agents: [without], host: { clock: first.clock } })
    const resumed = other.resume(run.id)
    const approved = resumed.approve(pending!.toolCallId, { by: 'ada' })
    approved.catch(() => {})
    await expect(first.waitUntilSettled(resumed.result)).rejects.toThrow(
      /hands over to the agent billing.*Put it back/,
    )
    const again = createRuntime({ ledger: first.ledger, agents: [first.agent], host: { clock: first.clock } })
    expect(await first.waitUntilSettled(again.resume(run.id).result)).toMatchObject({
      agent: 'billing',
      reason: 'answered',
    })
  })
})
