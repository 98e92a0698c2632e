// Agents that are tools, and handoffs, with the input that their target needs; what a parent reads of an answer; folded histories.
import { describe, expect, it } from 'vitest'
import * as z from 'zod'
import {
  type Agent,
  agentTool,
  createRuntime,
  defineAgent,
  foldHistory,
  handoff,
  memoryLedger,
  type Message,
  type Tool,
} from '@tallystick/core'

import {
  manualClock,
  scriptedModel,
  testTool,
  waitUntilSettled,
  type ScriptedStep,
} from '@tallystick/testkit'
import { ofType, recorded } from './stage.ts'
import { formatPlainText as historyText } from '../src/machine/history.ts'

const order = z.object({ number: z.string().regex(/^A-/), euros: z.coerce.number().default(5) })
const answered = z.object({ paid: z.number(), note: z.string() })

function payer(steps: readonly ScriptedStep[] = [{ text: '{"paid":5,"note":"secret"}' }]) {
  const model = scriptedModel(steps, 'payer')
  return {
    model,
    agent: defineAgent({
      name: 'payer',
      description: 'Pays.',
      instructions: 'Pay.',
      model,
      output: answered,
    }),
  }
}

async function played(tool: Tool, inputs: readonly object[], ledger = memoryLedger()) {
  const model = scriptedModel([
    ...inputs.map((input) => ({ toolCalls: [{ name: tool.name, input: input as never }] })),
    { text: 'Done.' },
  ])
  const desk = defineAgent({ name: 'desk', instructions: 'Ask.', model, tools: [tool] })
  const clock = manualClock()
  const runtime = createRuntime({ ledger, host: { clock } })
  const run = runtime.run(desk, 'Go.')
  const result = await waitUntilSettled(clock, run.result)
  const results = ofType(await recorded(ledger, run.id), 'tool_result')
  return { result, results, model, ledger, clock, runtime, desk }
}

describe('an agent as a tool', () => {
  it('given a schema, then models are offered it, a call that does not fit is refused, and the agent gets its task of what the schema read', async () => {
    const { agent, model } = payer()
    const tool = agentTool(agent, {
      input: order,
      task: ({ number, euros }) => `Pay ${euros.toFixed(2)} euros for ${number}.`,
      output: ({ output, turns }) => `${output.paid} euros paid in ${turns} turn`,
    })
    expect(tool.inputSchema).toMatchObject({ type: 'object', properties: { number: { type: 'string' } } })
    const { results, model: desk } = await played(tool, [{ number: 'B-7' }, { number: 'A-7', euros: '7' }])
    expect(results.map(({ outcome }) => outcome)).toEqual(['invalid_input', 'success'])
    expect(JSON.stringify(results[0]?.content)).toContain('number')
    expect(results[1]?.content).toEqual([{ type: 'text', text: '5 euros paid in 1 turn' }])
    expect(model.requests).toHaveLength(1)
    expect(model.requests[0]?.messages[0]).toMatchObject({ parts: [{ text: 'Pay 7.00 euros for A-7.' }] })
    expect(JSON.stringify(desk.requests.at(-1))).not.toContain('secret')
  })

  it('given a schema and no task, then the agent gets the input as JSON; a JSON Schema will do', async () => {
    const { agent, model } = payer()
    const input = {
      type: 'object',
      properties: { number: { type: 'string' } },
      required: ['number'],
    } as const
    const { results } = await played(agentTool(agent, { input }), [{ number: 7 }, { number: 'A-7' }])
    expect(results.map(({ outcome }) => outcome)).toEqual(['invalid_input', 'success'])
    expect(model.requests[0]?.messages[0]).toMatchObject({ parts: [{ text: '{"number":"A-7"}' }] })
    expect(results[1]?.content).toEqual([{ type: 'text', text: '{"paid":5,"note":"secret"}' }])
  })

  it('given parts of a result, then the calling model reads them', async () => {
    const parts = [
      { type: 'text', text: 'One.' },
      { type: 'text', text: 'Two.' },
    ] as const
    const { results } = await played(agentTool(payer().agent, { output: () => parts }), [{ task: 'Pay.' }])
    expect(results[0]).toMatchObject({ outcome: 'success', content: parts })
  })

  it.each([
    [
      'throws',
      () => {
        throw new Error('no such field')
      },
      /could not be read: .*no such field/,
    ],
    ['answers a promise', () => Promise.resolve('later'), /output of agentTool .* returned a promise/],
    ['answers nothing', () => undefined, /neither a text nor parts of a result/],
    ['answers parts of no form', () => [{ type: 'sound' }], /neither a text nor parts of a result/],
  ])(
    'given an output that %s, then the call fails and says so, and the work is on record',
    async (_how, output, message) => {
      const tool = () => agentTool(payer().agent, { output: output as never })
      const { result, results } = await played(tool(), [{ task: 'Pay.' }])
      expect(results[0]).toMatchObject({ outcome: 'failed', child: { turns: 1 } })
      expect(JSON.stringify(results[0]?.content)).toMatch(message)
      expect(result.text).toBe('Done.')
    },
  )

  it('given an answer of a run that was cut short, then it is not taken for the answer that output reads', async () => {
    const { agent } = payer([{ text: 'I think', fail: 'authentication' }])
    const { results } = await played(agentTool(agent, { output: () => 'read' }), [{ task: 'Pay.' }])
    expect(results[0]?.outcome).toBe('failed')
    expect(JSON.stringify(results[0]?.content)).not.toContain('read')
  })

  it('given a child run that a limit stopped, then what it wrote by then is not read as its answer', async () => {
    const agent = defineAgent({
      ...{ name: 'payer', description: 'Pays.', instructions: 'Pay.', limits: { maxTurns: 2 } },
      model: scriptedModel([{ toolCalls: [{ name: 'look', input: {} }] }, { text: 'So far.' }]),
      tools: [testTool({ name: 'look' })],
    })
    const { results } = await played(agentTool(agent, { output: () => 'as read' }), [{ task: 'Pay.' }])
    expect(results[0]?.outcome).toBe('success')
    expect(JSON.stringify(results[0]?.content)).toMatch(/stopped early \(turn_limit.*So far\./)
  })

  it('given a child run that waits for a person, when another process ends it, then the parent reads the answer all the same', async () => {
    const ledger = memoryLedger()
    const pay = testTool({ name: 'pay', effect: 'write', check: () => ({ kind: 'ask' }) })
    const child = (steps: readonly ScriptedStep[]) =>
      defineAgent({
        ...{ name: 'payer', description: 'Pays.', instructions: 'Pay.', output: answered, tools: [pay] },
        model: scriptedModel(steps, 'payer'),
      })
    const tool = (agent: Agent<z.infer<typeof answered>>) =>
      agentTool(agent, { output: ({ output }) => `${output.paid} euros paid` })
    const first = child([{ toolCalls: [{ name: 'pay', input: {} }] }])
    const { result, clock } = await played(tool(first), [{ task: 'Pay.' }], ledger)
    expect(result.status).toBe('suspended')
    const second = child([{ text: '{"paid":5,"note":"secret"}' }])
    const model = scriptedModel([{ text: 'Done.' }])
    const desk = defineAgent({ name: 'desk', instructions: 'Ask.', model, tools: [tool(second)] })
    const [approval] = result.pendingApprovals
    const [started] = ofType(await recorded(ledger, result.runId), 'tool_started')
    // A process that knows the child alone ends it; its parent reads the answer when it continues.
    const ofChild = createRuntime({ ledger, host: { clock }, agents: [second] }).resume(started!.child!)
    await waitUntilSettled(clock, ofChild.approve(approval!, { by: 'ada' }))
    await waitUntilSettled(clock, ofChild.result)
    const ofParent = createRuntime({ ledger, host: { clock }, agents: [desk] }).resume(result.runId)
    expect(await waitUntilSettled(clock, ofParent.result)).toMatchObject({ text: 'Done.' })
    const [ended] = ofType(await recorded(ledger, result.runId), 'tool_result')
    expect(ended?.content).toEqual([{ type: 'text', text: '5 euros paid' }])
  })

  it.each([
    [{ input: z.string() }, /The schema of the input of the tool payer allows values that are not objects/],
    [{ input: 'number' }, /agentTool: input is a text; expected a schema/],
    [{ input: { number: 'string' } }, /has the fields number, but none that a JSON Schema has/],
    [{ output: async () => 'x' }, /output is an async function/],
    [{ task: () => 'x' }, /agentTool \(payer\): task was given without input/],
    [{ customOutputExtractor: () => 'x' }, /Did you mean output\?/],
    [{ parameters: z.object({}) }, /Did you mean input\?/],
  ])('given the options %j, then agentTool refuses them', (options, message) => {
    expect(() => agentTool(payer().agent, options as never)).toThrow(message)
  })
})

describe('a handoff with input', () => {
  function office(options: Parameters<typeof handoff>[1], inputs: readonly object[]) {
    const billingModel = scriptedModel([{ text: 'Paid.' }])
    const billing = defineAgent({
      name: 'billing',
      description: 'Bills.',
      instructions: 'Bill.',
      model: billingModel,
    })
    const model = scriptedModel(
      inputs.map((input) => ({ toolCalls: [{ name: 'transfer_to_billing', input: input as never }] })),
    )
    const desk = defineAgent({
      name: 'desk',
      instructions: 'Greet.',
      model,
      handoffs: [handoff(billing, options)],
    })
    const [clock, ledger] = [manualClock(), memoryLedger()]
    const run = createRuntime({ ledger, host: { clock } }).run(desk, 'Pay A-7.')
    return { billingModel, model, result: waitUntilSettled(clock, run.result) }
  }

  it('given a schema, then a call that does not fit hands nothing over, and the filter gets the input of the one that fits', async () => {
    const seen: unknown[] = []
    const { billingModel, model, result } = office(
      {
        input: z.object({ number: z.string() }),
        filter: (messages, input) => {
          seen.push(input)
          return messages.slice(0, 1)
        },
      },
      [{ number: 7 }, { number: 'A-7' }],
    )
    expect(await result).toMatchObject({ text: 'Paid.', agent: 'billing' })
    expect(model.requests).toHaveLength(2)
    expect(model.requests[0]?.tools[0]?.inputSchema).toMatchObject({ required: ['number'] })
    expect(seen).toEqual([{ number: 'A-7' }])
    expect(billingModel.requests[0]?.messages).toHaveLength(1)
  })

  it('given two calls in one reply, then the filter gets the input of the one that handed over', async () => {
    const seen: unknown[] = []
    const target = defineAgent({
      ...{ name: 'billing', description: 'Bills.', instructions: 'Bill.' },
      model: scriptedModel([{ text: 'Paid.' }]),
    })
    const options = {
      input: z.object({ number: z.string() }),
      filter: (messages: readonly Message[], input: { number: string }) => {
        seen.push(input)
        return messages.slice(0, 1)
      },
    }
    const name = 'transfer_to_billing'
    const calls = [
      { name, input: { number: 'A-7' } },
      { name, input: { number: 'B-8' } },
    ]
    const model = scriptedModel([{ toolCalls: calls }])
    const desk = defineAgent({
      name: 'desk',
      instructions: 'Greet.',
      model,
      handoffs: [handoff(target, options)],
    })
    const clock = manualClock()
    const run = createRuntime({ ledger: memoryLedger(), host: { clock } }).run(desk, 'Pay A-7.')
    expect(await waitUntilSettled(clock, run.result)).toMatchObject({ agent: 'billing' })
    expect(seen).toEqual([{ number: 'A-7' }])
  })

  it.each<readonly [string, object, RegExp]>([
    [
      'a filter that throws',
      {
        filter: () => {
          throw new Error('no rule')
        },
      },
      /filter of the handoff to billing threw: .*no rule.* continue it with resume/,
    ],
    [
      'a renderer that throws',
      {
        foldHistory: {
          render: () => {
            throw new Error('no rule')
          },
        },
      },
      /render of foldHistory threw: no rule/,
    ],
    [
      'a renderer that answers no text',
      { foldHistory: { render: () => 7 } },
      /render of foldHistory: its answer is 7; expected a text/,
    ],
    [
      'a renderer that answers a promise',
      { foldHistory: { render: () => Promise.resolve('x') } },
      /render of foldHistory returned a promise/,
    ],
    [
      'a renderer that answers nothing to read',
      { foldHistory: { heading: '', render: () => '' } },
      /render of foldHistory: it returned an empty text/,
    ],
  ])('given %s, then the result rejects with what to do', async (_what, options, message) => {
    await expect(office(options as never, [{}]).result).rejects.toThrow(message)
  })

  it('given foldHistory, then the next agent reads the past as one message, in the words that were given', async () => {
    const { billingModel, result } = office({ foldHistory: { heading: 'So far:' } }, [{ reason: 'money' }])
    await result
    const [message, ...others] = billingModel.requests[0]?.messages ?? []
    expect(others).toEqual([])
    expect(JSON.stringify(message)).toMatch(
      /So far:\\nUser: Pay A-7\.\\nAssistant called transfer_to_billing/,
    )
  })

  it('given foldHistory: true, then it is as foldedHistory says it; false keeps the history', async () => {
    const folded = office({ foldHistory: true }, [{}])
    await folded.result
    expect(JSON.stringify(folded.billingModel.requests[0]?.messages)).toContain(
      'What was said and done before you took over:',
    )
    const kept = office({ foldHistory: false }, [{}])
    await kept.result
    expect(kept.billingModel.requests[0]?.messages).toHaveLength(3)
  })

  it('given filter and foldHistory, or a fold of no form, then handoff refuses them', () => {
    const { agent } = payer()
    expect(() => handoff(agent, { foldHistory: true, filter: (messages) => messages })).toThrow(
      /filter and foldHistory were given/,
    )
    expect(() => handoff(agent, { foldHistory: { header: 'x' } as never })).toThrow(
      /foldHistory.header is not an option/,
    )
    expect(() => handoff(agent, { inputType: z.object({}) } as never)).toThrow(/Did you mean input\?/)
  })
})

describe('foldHistory', () => {
  const said = [{ role: 'user', parts: [{ type: 'text', text: 'Hello.' }] }] as const

  it('given a renderer, then its text is the message; the renderer of the default is exported', () => {
    const shout = foldHistory({ heading: '', render: (messages) => historyText(messages).toUpperCase() })
    expect(shout(said)).toEqual([{ role: 'user', parts: [{ type: 'text', text: 'USER: HELLO.' }] }])
    expect(foldHistory()([])).toEqual([])
    expect(() => foldHistory({ render: async () => '' } as never)).toThrow(/render is an async function/)
  })
})
