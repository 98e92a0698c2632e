import {
  type AgentOptions,
  createRuntime,
  defineAgent,
  defineGuardrail,
  memoryLedger,
  type RuntimeEvent,
  joinText,
  type Tool,
} from '@tallystick/core'
import { auditAll } from '@tallystick/core/machine'
import { computeDigest, type EventOf } from '@tallystick/core/vocabulary'
import { callTool, checkLaws, scriptedModel } from '@tallystick/testkit'
import { defineTool, repairInputs, type ToolSpecification } from '@tallystick/tools'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'

const schema = z.strictObject({ count: z.number(), of: z.string().optional() })
/** What `order` ran with. */
const ran: unknown[] = []
function order(more: Partial<ToolSpecification<typeof schema>> = {}): Tool {
  return defineTool({
    ...{ name: 'order', description: 'Orders.', input: schema, effect: 'write', repairInput: true },
    execute: (input) => {
      ran.push(input)
      return 'ordered'
    },
    ...more,
  })
}

async function asking(input: unknown, tool: Tool = order(), more: Partial<AgentOptions> = {}) {
  ran.length = 0
  const ledger = memoryLedger()
  const model = scriptedModel([{ toolCalls: [{ name: 'order', input: input as string }] }, { text: 'Done.' }])
  const agent = defineAgent({ name: 'a', instructions: '', model, tools: [tool], ...more })
  const runtime = createRuntime({ ledger, agents: [agent] })
  const result = await runtime.run(agent, 'Go.').result
  const events = async () => {
    const all = await Array.fromAsync(ledger.read(result.runId))
    auditAll(all)
    expect(checkLaws(all)).toEqual([])
    return all
  }
  return { ledger, runtime, agent, result, events }
}

const collected = (events: readonly RuntimeEvent[]) => only(events, 'tool_requests_collected').calls[0]
const ended = (events: readonly RuntimeEvent[]) => {
  const { outcome, content } = only(events, 'tool_result')
  return `${outcome}: ${joinText(content)}`
}
function only<T extends RuntimeEvent['type']>(events: readonly RuntimeEvent[], type: T): EventOf<T> {
  return events.find((event) => event.type === type) as EventOf<T>
}

const commas = 'commas before closing brackets were removed'
const asText = 'count was a text and was read as a number'
const cut = 'closing brackets that were missing at its end were added'

describe('an input that nearly fits', () => {
  it.each<[string, unknown, readonly string[]]>([
    ['JSON with a mistake', '{"count":2,}', [commas]],
    ['a number in a text', { count: '2' }, [asText]],
    ['both', '{"count":"2",}', [commas, asText]],
  ])(
    'given %s, when its tool repairs inputs, then what was meant runs, and what was repaired is on record',
    async (_what, input, repairs) => {
      const { result, events } = await asking(input)
      expect(result.text).toBe('Done.')
      expect(ran).toEqual([{ count: 2 }])
      const all = await events()
      expect(collected(all)).toMatchObject({
        ...{ plan: 'run', input: { count: 2 }, repairs, inputDigest: computeDigest({ count: 2 }) },
      })
      expect(only(all, 'tool_started').inputDigest).toBe(computeDigest({ count: 2 }))
      // What the model wrote stays as it wrote it.
      expect(only(all, 'tool_request_ready')).toMatchObject(
        typeof input === 'string' ? { malformed: { text: input } } : { input },
      )
    },
  )

  it.each<[string, unknown, Tool]>([
    ['a tool that does not repair', '{"count":2,}', order({ repairInput: false })],
    ['one that says nothing of it', { count: '2' }, order({ repairInput: undefined })],
    ['what does not fit after it either', '{"count":"two",}', order()],
    ['what has two meanings', '{"count":1,"count":2}', order()],
    ['what is not an object', '[1,]', order()],
    ['what nothing can be made of', { count: true }, order()],
    ['more mistakes than a near miss has', { of: 'x', count: 1, ...many(21) }, loose()],
  ])(
    'given %s, when it is called, then nothing runs, and the refusal is that of the first check',
    async (_what, input, tool) => {
      const { events } = await asking(input, tool)
      expect(ran).toEqual([])
      const all = await events()
      expect(collected(all)).not.toHaveProperty('repairs')
      expect(collected(all)).not.toHaveProperty('input')
      const plain = await asking(input, plainOf(tool))
      expect(ended(all)).toBe(ended(await plain.events()))
    },
  )

  it('given twenty mistakes, when they are repaired, then it runs', async () => {
    await asking({ ...many(20) }, loose())
    expect(ran).toHaveLength(1)
  })

  it('given a write whose input ended too early, when it fits, then a person is asked, who reads what was repaired', async () => {
    const { result, runtime, events } = await asking('{"count":2')
    const reason = `The model's input did not fit and was repaired: ${cut}.`
    expect(result.pendingApprovals).toMatchObject([
      { reason, input: { count: 2 }, inputDigest: computeDigest({ count: 2 }) },
    ])
    expect(ran).toEqual([])
    const run = runtime.resume(result.runId)
    await run.approve(result.pendingApprovals[0]!, { by: 'ada' })
    await run.result
    expect(ran).toEqual([{ count: 2 }])
    const all = await events()
    expect(only(all, 'approval_requested')).toMatchObject({
      reason,
      inputDigest: computeDigest({ count: 2 }),
    })
    expect(only(all, 'approval_decided').inputDigest).toBe(computeDigest({ count: 2 }))
  })

  it('given a read whose input ended too early, when it fits, then it runs', async () => {
    await asking('{"count":2', order({ effect: 'read' }))
    expect(ran).toEqual([{ count: 2 }])
  })

  it.each<[string, Partial<AgentOptions>, Tool, string]>([
    ['a tool that says why', {}, order({ approval: ({ count }) => `${count} pieces` }), '2 pieces. '],
    ['a tool that only asks', {}, order({ approval: 'always' }), ''],
    [
      'the policy of the agent',
      { approval: ({ input }) => ({ ask: JSON.stringify(input) }) },
      order(),
      '{"count":2}. ',
    ],
  ])(
    'given %s, when a person is asked, then about the repaired input, and with what was repaired',
    async (_who, more, tool, why) => {
      const { result } = await asking('{"count":2,}', tool, more)
      expect(result.pendingApprovals[0]).toMatchObject({
        ...{
          reason: `${why}The model's input did not fit and was repaired: ${commas}.`,
          input: { count: 2 },
        },
      })
    },
  )

  it('given a policy that denies or a guardrail that blocks, when the input was repaired, then it does not run', async () => {
    const denied = await asking('{"count":2,}', order(), { approval: () => ({ deny: 'Too dear.' }) })
    expect(ended(await denied.events())).toBe('denied: Too dear.')
    const seen: unknown[] = []
    const block = defineGuardrail({
      ...{ name: 'g', on: 'tool_input' },
      check: ({ input }: { readonly input: unknown }) => (seen.push(input), { block: 'No.' }),
    })
    const blocked = await asking('{"count":2,}', order(), { guardrails: [block] })
    expect(ended(await blocked.events())).toContain('denied')
    expect(seen).toEqual([{ count: 2 }])
    expect(ran).toEqual([])
  })

  it('given a guardrail that changes the repaired input, when it runs, then with what the guardrail made of it', async () => {
    const more = defineGuardrail({
      ...{ name: 'g', on: 'tool_input' },
      check: () => ({ replace: { count: 3 } }),
    })
    const { events } = await asking('{"count":2,}', order(), { guardrails: [more] })
    expect(ran).toEqual([{ count: 3 }])
    expect(collected(await events())).toMatchObject({ input: { count: 3 }, repairs: [commas] })
  })

  it('given a guardrail that makes an input unfit, when it is checked, then that is not repaired', async () => {
    const more = defineGuardrail({
      ...{ name: 'g', on: 'tool_input' },
      check: () => ({ replace: { count: '3' } }),
    })
    const { events } = await asking({ count: 2 }, order(), { guardrails: [more] })
    expect(ran).toEqual([])
    expect(ended(await events())).toContain('invalid_input')
  })

  it('given a person who changes the input, when that does not fit, then it is refused and not repaired', async () => {
    const { result, runtime } = await asking({ count: 2 }, order({ approval: 'always' }))
    const run = runtime.resume(result.runId)
    const answer = await run.approve(result.pendingApprovals[0]!, { by: 'ada', input: { count: '5' } })
    expect(answer).toMatchObject({ accepted: false, code: 'invalid_input' })
    await run.cancel('enough')
  })
})

/** Texts for so many numbers. */
function many(count: number): object {
  return Object.fromEntries(Array.from({ length: count }, (_, at) => [`n${at}`, '1']))
}

/** The same tool over a schema with many numbers. */
function loose(repairInput = true): Tool {
  const numbers = Object.fromEntries(Array.from({ length: 30 }, (_, at) => [`n${at}`, z.number().optional()]))
  return order({ input: z.object({ count: z.number().optional(), ...numbers }) as never, repairInput })
}

/** The tool without its repair. */
function plainOf(tool: Tool): Tool {
  const plain = { ...tool }
  delete plain.repair
  return plain
}

describe('a tool that breaks the contract of its repair', () => {
  it.each<[string, Tool['repair']]>([
    [
      'throws',
      () => {
        throw new Error('no')
      },
    ],
    ['names no repair', () => ({ input: { count: 2 }, repairs: [] })],
    ['answers no object', () => ({ input: 'x', repairs: ['a'] }) as never],
    [
      'answers what JSON cannot carry',
      () => ({ input: { count: 2, of: undefined, at: 1n }, repairs: ['a'] }) as never,
    ],
    ['answers a promise', () => Promise.resolve({ input: { count: 2 }, repairs: ['a'] }) as never],
    ['answers nothing', () => undefined],
  ])('one that %s repairs nothing', async (_how, repair) => {
    const { events } = await asking({ count: '2' }, { ...order(), ...(repair && { repair }) })
    expect(ran).toEqual([])
    expect(ended(await events())).toContain('count: expected number, received string')
  })
})

describe('repairInputs', () => {
  it('makes any tool repair, and callTool repairs as a runtime does', async () => {
    const [repairing] = repairInputs([order({ repairInput: false })])
    await asking('{count:2}', repairing)
    expect(ran).toEqual([{ count: 2 }])
    expect(await callTool(repairing!, { count: '3' })).toMatchObject({ outcome: 'success' })
    expect(ran).toEqual([{ count: 2 }, { count: 3 }])
    expect(await callTool(repairing!, { count: 'x' })).toMatchObject({ outcome: 'invalid_input' })
    expect(await callTool(order({ repairInput: false }), { count: '3' })).toMatchObject({
      ...{ outcome: 'invalid_input' },
    })
  })

  it('refuses what is not a list of tools, and a tool whose repairInput is not a yes or no', () => {
    expect(() => repairInputs('all' as never)).toThrow('repairInputs: tools')
    expect(() => repairInputs([{}] as never)).toThrow('repairInputs: tools[0]')
    expect(() => order({ repairInput: 'yes' as never })).toThrow('The tool order: repairInput')
  })
})
