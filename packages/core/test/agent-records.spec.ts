// What a ledger records of an agent, and what tools stand for agents, to the letter.
import { agentTool, defineAgent, handBack, handoff, type Agent, type AgentOptions } from '@tallystick/core'
import { scriptedModel, testTool } from '@tallystick/testkit'
import { firstValueFrom, lastValueFrom } from 'rxjs'
import { describe, expect, it } from 'vitest'
import { defaultLimits } from '../src/events/limits.ts'
import { isAgentTool } from '../src/agent/agent-tool.ts'
import { createAgentRegistry, isSameAgent, listReachableAgents } from '../src/agent/registry.ts'
import { summaryInstructions } from '../src/machine/compaction.ts'

const model = scriptedModel([])
const ref = { provider: 'scripted', api: 'script', modelId: 'scripted-1' }
const sound = { name: 'agent', instructions: 'Act.', model }
const worker = defineAgent({ ...sound, name: 'Work & Play 2', description: 'Works.' })
const silent = defineAgent({ ...sound, name: 'silent' })

describe('the definition of an agent', () => {
  it('of which nothing is said says what its model sees, and its limits', () => {
    const { digest, ...definition } = defineAgent(sound).definition
    expect(digest).toMatch(/^[0-9a-f]{64}$/)
    expect(definition).toStrictEqual({
      ...{ model: ref, instructions: 'Act.', tools: [], parallelToolCalls: true },
      policy: { limits: defaultLimits },
    })
  })

  it('says everything that was said of it, and nothing of its code', () => {
    const fallback = { ...scriptedModel([], 'second'), maxWebSearches: 2, pinnedOptions: { depth: 3 } }
    const summarizer = { ...scriptedModel([], 'small'), pinnedOptions: { brief: true } }
    const check = (): 'pass' => 'pass'
    const look = {
      ...testTool({ name: 'look', timeoutMs: 500 }),
      approval: 'never' as const,
      inputSchema: { type: 'object', properties: {} },
    }
    const { definition } = defineAgent({
      ...sound,
      instructions: () => 'Act now.',
      model: { ...model, maxWebSearches: 'unbounded' },
      ...{ tools: [look], parallelToolCalls: false, maxOutputTokens: 9, modelSettings: { seed: 1 } },
      ...{ fallbacks: [fallback], onRefusal: { history: 'leave_out' }, approval: () => 'ask' },
      guardrails: [
        { name: 'in', on: 'input', check },
        { name: 'beside', on: 'input', beside: true, check },
        { name: 'out', on: 'output', check },
      ],
      ...{ output: { type: 'object', properties: {} }, maxOutputRepairs: 5 },
      handoffs: [worker, handBack('desk', { description: 'Back.' })],
      compaction: { maxContextTokens: 900, keepMessages: 4, summarize: summarizer, instructions: 'Sum up.' },
      ...{ limits: { maxTurns: 3 }, retry: { maxAttempts: 2 }, timeouts: { idleMs: 7 } },
    })
    const { digest: _digest, ...said } = definition
    const reasons = (said.tools ?? []).slice(1).map(({ name }) => name)
    expect(reasons).toEqual(['transfer_to_work_play_2', 'transfer_to_desk'])
    const handoffPolicy = { effect: 'read', recovery: 'rerun' }
    expect(said).toStrictEqual({
      ...{ model: ref, instructions: '', tools: said.tools, parallelToolCalls: false, maxOutputTokens: 9 },
      ...{ modelSettings: { seed: 1 }, maxWebSearches: 'unbounded' },
      fallbacks: [{ model: { ...ref, modelId: 'second' }, maxWebSearches: 2 }],
      onRefusal: { history: 'leave_out' },
      guardrails: [
        { name: 'in', on: 'input' },
        { name: 'beside', on: 'input', beside: true },
        { name: 'out', on: 'output' },
      ],
      output: { ...said.output, maxRepairs: 5 },
      handoffs: [
        { tool: 'transfer_to_work_play_2', to: 'Work & Play 2' },
        { tool: 'transfer_to_desk', to: 'desk', back: true },
      ],
      summarizer: { model: { ...ref, modelId: 'small' }, instructions: 'Sum up.' },
      policy: {
        limits: { ...defaultLimits, maxTurns: 3 },
        ...{ retry: { maxAttempts: 2 }, timeouts: { idleMs: 7 } },
        compaction: { maxContextTokens: 900, keepMessages: 4 },
        tools: [
          { name: 'look', effect: 'read', recovery: 'rerun', timeoutMs: 500, approval: 'never' },
          { name: 'transfer_to_work_play_2', ...handoffPolicy },
          { name: 'transfer_to_desk', ...handoffPolicy },
        ],
        approval: true,
        models: [
          { model: { ...ref, modelId: 'second' }, options: { depth: 3 } },
          { model: { ...ref, modelId: 'small' }, options: { brief: true } },
        ],
      },
    })
    expect(said.tools?.[0]).toStrictEqual({
      ...{ name: 'look', description: 'The test tool look.' },
      inputSchema: { type: 'object', properties: {} },
    })
  })

  it('fills in what a summarizer and a check of the answer go by', () => {
    const { summarizer, output } = defineAgent({
      ...sound,
      compaction: { maxContextTokens: 1, keepMessages: 1, summarize: scriptedModel([], 'small') },
      output: { type: 'object' },
    }).definition
    expect(summarizer?.instructions).toBe(summaryInstructions)
    expect(output?.maxRepairs).toBe(2)
    const own = defineAgent({
      ...sound,
      compaction: { maxContextTokens: 1, keepMessages: 1, summarize: () => 's' },
    })
    expect(own.definition).not.toHaveProperty('summarizer')
    expect(own.rules.compaction).toMatchObject({ maxContextTokens: 1, keepMessages: 1 })
  })

  it('says nothing of a policy that decides nothing, and of searches that never happen', () => {
    const { definition } = defineAgent({
      ...sound,
      model: { ...model, maxWebSearches: 0 },
      ...{ onRefusal: { history: undefined }, retry: {}, timeouts: { idleMs: undefined }, modelSettings: {} },
    })
    expect(Object.keys(definition)).not.toContain('onRefusal')
    expect(Object.keys(definition)).not.toContain('maxWebSearches')
    expect(Object.keys(definition)).not.toContain('modelSettings')
    expect(definition.policy).toStrictEqual({ limits: defaultLimits })
    const one = defineAgent({ ...sound, model: { ...model, maxWebSearches: 1 } }).definition
    expect(one.maxWebSearches).toBe(1)
  })
})

describe('a tool that is an agent', () => {
  it('asks for a task, and says so to the letter', () => {
    const tool = agentTool(worker)
    expect({ ...tool, check: undefined, run: undefined, toTask: undefined }).toStrictEqual({
      ...{ name: 'work_play_2', description: 'Works.', effect: 'write', recovery: 'rerun' },
      ...{ agent: worker, child: 'Work & Play 2', check: undefined, run: undefined, toTask: undefined },
      inputSchema: {
        type: 'object',
        properties: {
          task: { type: 'string', description: 'What to do, with all that is needed to know for it.' },
        },
        required: ['task'],
        additionalProperties: false,
      },
    })
    expect(agentTool(worker, { name: 'it', description: 'Ask it.', effect: 'read' })).toMatchObject({
      ...{ name: 'it', description: 'Ask it.', effect: 'read' },
    })
  })

  it('takes a task that is a text', async () => {
    const tool = agentTool(worker)
    const refused = {
      ...{ kind: 'refuse', outcome: 'invalid_input', text: 'task: expected a text that is not empty' },
    }
    for (const task of ['', ' \n', 7, undefined])
      expect(tool.check({ task } as never, {} as never)).toEqual(refused)
    expect(tool.check({ task: 'Do it.' }, {} as never)).toEqual({ kind: 'run' })
    expect(await tool.toTask({ task: ' x ' })).toEqual({ task: ' x ' })
    expect(await tool.toTask({ task: ' ' })).toEqual({ fault: 'task: expected a text that is not empty' })
    await expect(firstValueFrom(tool.run({} as never))).rejects.toThrow(
      'The tool work_play_2 is an agent: only a',
    )
  })

  it('needs words that say when to ask it', () => {
    expect(() => agentTool(silent)).toThrow('The agent silent has no description, so no model could tell')
    expect(agentTool(silent, { description: 'Ask it.' }).description).toBe('Ask it.')
    expect(() => agentTool(worker, { effect: 'both' as never })).toThrow("effect is 'both'")
    expect(() => agentTool({} as never)).toThrow('agentTool: the agent is an object; expected an agent')
  })

  it('differs from a tool that only says so', () => {
    expect(isAgentTool(agentTool(worker))).toBe(true)
    const tool = testTool({ name: 'x' })
    expect(isAgentTool(tool)).toBe(false)
    expect(isAgentTool({ ...tool, child: 'worker' })).toBe(false)
    expect(isAgentTool({ ...tool, agent: worker } as never)).toBe(false)
  })
})

describe('a tool that hands over', () => {
  const inputSchema = {
    type: 'object',
    properties: { reason: { type: 'string', description: 'Why you hand over, in one sentence.' } },
    additionalProperties: false,
  }

  it('says to whom, and why', async () => {
    const { to, agent, tool } = handoff(worker)
    expect([to, agent]).toEqual(['Work & Play 2', worker])
    expect({ ...tool, check: undefined, run: undefined }).toStrictEqual({
      ...{ check: undefined, run: undefined },
      ...{ name: 'transfer_to_work_play_2', description: 'Works.', effect: 'read', recovery: 'rerun' },
      ...{ handoff: { to: 'Work & Play 2' }, inputSchema },
    })
    expect(tool.check({}, {} as never)).toEqual({ kind: 'run' })
    expect(await lastValueFrom(tool.run({} as never))).toEqual({
      ...{ type: 'tool_ended', outcome: 'success' },
      content: [
        { type: 'text', text: 'The conversation is handed over to Work & Play 2, who goes on from here.' },
      ],
    })
  })

  it('is described by what was said, by its agent, or by its name', () => {
    const described = (agent: Agent<unknown>, options = {}): string =>
      handoff(agent, options).tool.description
    expect(described(worker, { description: 'Now.' })).toBe('Now.')
    expect(described(worker)).toBe('Works.')
    expect(described(silent)).toBe('Hands the conversation over to silent, who goes on with it.')
    expect(handoff(worker, { toolName: 'ask' }).tool.name).toBe('ask')
    const filter = <T>(messages: T): T => messages
    expect(handoff(worker, { filter }).filter).toBe(filter)
    expect(handoff(worker)).not.toHaveProperty('filter')
    expect(() => handoff({} as never)).toThrow('handoff: the agent is an object; expected an agent')
    expect(() => handoff('x' as never)).toThrow('handoff: the agent is a text; expected an agent')
  })

  it('may hand back to a person', async () => {
    const { to, agent, tool } = handBack('The Desk', { description: 'Back.' })
    expect([to, agent]).toEqual(['The Desk', undefined])
    expect({ ...tool, check: undefined, run: undefined }).toStrictEqual({
      ...{ check: undefined, run: undefined },
      ...{ name: 'transfer_to_the_desk', description: 'Back.', effect: 'read', recovery: 'rerun' },
      ...{ handoff: { to: 'The Desk', back: true }, inputSchema },
    })
    expect(await lastValueFrom(tool.run({} as never))).toMatchObject({
      content: [{ type: 'text', text: 'The conversation goes to The Desk.' }],
    })
    expect(handBack('desk', { toolName: 'bye', description: 'Back.' }).tool.name).toBe('bye')
  })
})

describe('two agents', () => {
  const [small, second] = [scriptedModel([], 'small'), scriptedModel([], 'second')]
  const look = testTool({ name: 'look' })
  const parts = {
    ...sound,
    ...{ approval: (): 'ask' => 'ask', stopWhen: () => false, prepareTurn: () => undefined },
    fallbacks: [second],
    guardrails: [{ name: 'g', on: 'input' as const, check: (): 'pass' => 'pass' }],
    tools: [look, agentTool(worker)],
    handoffs: [silent],
    compaction: { maxContextTokens: 1, keepMessages: 1, summarize: small },
  }
  const summing = { maxContextTokens: 1, keepMessages: 1, summarize: () => 's' }
  const same = (one: Partial<AgentOptions>, another: Partial<AgentOptions> = {}): boolean =>
    isSameAgent(defineAgent({ ...parts, ...another }), defineAgent({ ...parts, ...one }))

  it('are the same where one was made twice', () => {
    expect(same({})).toBe(true)
    const agent = defineAgent(parts)
    expect(isSameAgent(agent, agent)).toBe(true)
    expect(same({ handoffs: [defineAgent({ ...sound, name: 'silent' })] })).toBe(true)
    expect(same({ tools: [look, agentTool(worker)] })).toBe(true)
    expect(same({ compaction: summing }, { compaction: summing })).toBe(true)
  })

  const others: readonly (readonly [string, Partial<AgentOptions>, Partial<AgentOptions>])[] = [
    ['model', { model: scriptedModel([]) }, {}],
    ['summarizer', { compaction: { ...parts.compaction, summarize: scriptedModel([], 'small') } }, {}],
    ['function that sums up', { compaction: { ...summing, summarize: () => 's' } }, { compaction: summing }],
    ['approval policy', { approval: () => 'ask' }, {}],
    ['rule that stops', { stopWhen: () => false }, {}],
    ['rule before each turn', { prepareTurn: () => undefined }, {}],
    ['fallback', { fallbacks: [scriptedModel([], 'second')] }, {}],
    ['guardrail', { guardrails: [{ name: 'g', on: 'input', check: () => 'pass' }] }, {}],
    ['tool', { tools: [testTool({ name: 'look' }), agentTool(worker)] }, {}],
    [
      'agent behind a tool',
      { tools: [look, agentTool(defineAgent({ ...sound, name: 'Work & Play 2', description: 'Works.' }))] },
      {},
    ],
    ['text', { instructions: 'Rest.' }, {}],
    ['rule less', { stopWhen: undefined }, {}],
  ]
  it.each(others)('are different where one has another %s', (_part, one, another) => {
    expect(same(one, another)).toBe(false)
  })
})

describe('the agents that a runtime knows', () => {
  const prices = { 'scripted-1': { inputUsd: 1, outputUsd: 2 }, small: { inputUsd: 3, outputUsd: 4 } }

  it('are those that it was given, and all that may come to work with them', () => {
    const circle: Agent<unknown>[] = []
    const boss = defineAgent({
      ...{ ...sound, name: 'boss', tools: [agentTool(worker), testTool({ name: 'look' })] },
      handoffs: () => [...circle, handBack('desk', { description: 'Back.' })],
    })
    const next = defineAgent({ ...sound, name: 'next', handoffs: [boss] })
    circle.push(next)
    const registry = createAgentRegistry({})
    const known = registry.register(boss)
    expect(registry.register(boss)).toBe(known)
    expect(registry.register(known)).toBe(known)
    for (const name of ['boss', 'next', 'Work & Play 2']) expect(registry.find(name)?.name).toBe(name)
    expect(registry.find('desk')).toBeUndefined()
    expect(listReachableAgents(boss).map(({ name }) => name)).toEqual(['boss', 'next', 'Work & Play 2'])
    expect(listReachableAgents(next).map(({ name }) => name)).toEqual(['next', 'boss', 'Work & Play 2'])
  })

  it('are two of one name by what is said of them, or by their code', () => {
    const registry = createAgentRegistry(prices)
    registry.register(defineAgent(sound))
    expect(() => registry.register(defineAgent({ ...sound, instructions: 'Rest.' }))).toThrow(
      'Two different agents are named agent',
    )
    const free = createAgentRegistry({})
    free.register(defineAgent(sound))
    expect(() => free.register(defineAgent({ ...sound, model: scriptedModel([]) }))).toThrow(
      'Two agents of different code are named agent',
    )
  })

  it('have the prices of all their models', () => {
    const agent = defineAgent({
      ...sound,
      fallbacks: [scriptedModel([], 'small'), scriptedModel([], 'free')],
      compaction: { maxContextTokens: 1, keepMessages: 1, summarize: scriptedModel([], 'small') },
    })
    const { definition, model: called, fallbacks } = createAgentRegistry(prices).register(agent)
    expect(definition).toStrictEqual({
      ...agent.definition,
      price: prices['scripted-1'],
      fallbacks: [
        { model: { ...ref, modelId: 'small' }, price: prices.small },
        { model: { ...ref, modelId: 'free' } },
      ],
      summarizer: { ...agent.definition.summarizer, price: prices.small },
    })
    expect([called, fallbacks]).toEqual([agent.model, agent.fallbacks])
    expect(createAgentRegistry({}).register(defineAgent(sound)).definition).toStrictEqual(
      defineAgent(sound).definition,
    )
  })

  it('are judged by the policy of the runtime, too', async () => {
    const denied = { deny: 'no' }
    const { approval } = createAgentRegistry({}, { approval: () => denied }).register(
      defineAgent({ ...sound, approval: () => 'ask' }),
    )
    expect(await approval?.({} as never)).toBe(denied)
    expect(createAgentRegistry({}).register(defineAgent(sound))).not.toHaveProperty('approval')
  })
})
