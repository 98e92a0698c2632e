import { createHash } from 'node:crypto'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import {
  createRuntime,
  defineAgent,
  memoryLedger,
  type Agent,
  type AgentOptions,
  type Model,
  type RunOptions,
} from '@tallystick/core'
import { digestTextsWith } from '@tallystick/core/store-kit'
import { toCanonicalJson, computeDigest } from '@tallystick/core/vocabulary'
import {
  scriptedModel,
  testTool,
  hostileTexts,
  manualClock,
  waitUntilSettled,
  callTool,
  given,
} from '@tallystick/testkit'
import { describe, expect, it } from 'vitest'
import { KnownModels } from '../src/agent/registry.ts'
import { applyGivenModel } from '../src/events/agent-definition.ts'
import { begun, called } from './pages.ts'
import { stage, ofType, recorded } from './stage.ts'

// The definition of an agent in a run that was given a model, and the models that a runtime finds by their names.

const ref = (modelId: string) => ({ provider: 'p', api: 'a', modelId })
const own = ref('own')
const pin = (modelId: string) => ({ model: ref(modelId), options: { of: modelId } })
const definition = {
  ...{ name: 'agent', digest: 'd', instructions: 'x', tools: [], model: own },
  policy: { limits: {}, models: ['own', 'fallback', 'sums', 'given'].map(pin) },
}
const inRun = (more: object, given: object) =>
  applyGivenModel({ ...definition, ...more } as never, { model: ref('given'), ...given })

describe('the definition of an agent in a run that was given a model', () => {
  it('is the same without one, and where nothing changes', () => {
    expect(applyGivenModel(definition as never, undefined)).toBe(definition)
    const plain = { ...definition, policy: { limits: {} } } as never
    expect(applyGivenModel(plain, { model: own })).toBe(plain)
  })

  it('has the price and the searches of the given model, and none of its own', () => {
    const mine = { price: { inputUsd: 1 }, maxWebSearches: 3 }
    const changed = inRun(mine, { price: { inputUsd: 2 }, maxWebSearches: 5 })
    expect(changed).toMatchObject({ model: ref('given'), price: { inputUsd: 2 }, maxWebSearches: 5 })
    expect(changed.digest).not.toBe('d')
    for (const given of [{}, { maxWebSearches: 0 }]) {
      expect(inRun(mine, given)).not.toHaveProperty('price')
      expect(inRun(mine, given)).not.toHaveProperty('maxWebSearches')
    }
  })

  it('has the fallbacks but for the given model', () => {
    const fallbacks = ['given', 'fallback'].map((modelId) => ({ model: ref(modelId) }))
    expect(inRun({ fallbacks }, {}).fallbacks).toEqual([{ model: ref('fallback') }])
    expect(inRun({ fallbacks: fallbacks.slice(0, 1) }, {})).not.toHaveProperty('fallbacks')
  })

  it('says what the adapters of the models that may be called are set to', () => {
    const pinned = (more: object, given: object) => inRun(more, given).policy?.models
    expect(pinned({}, {})).toEqual([pin('fallback'), pin('sums')])
    expect(pinned({}, { options: { of: 'run' } })).toEqual([
      ...[{ model: ref('given'), options: { of: 'run' } }, pin('fallback'), pin('sums')],
    ])
    expect(pinned({ fallbacks: [{ model: own }] }, {})).toEqual([pin('own'), pin('fallback'), pin('sums')])
    expect(pinned({ summarizer: { model: own } }, {})).toEqual([pin('own'), pin('fallback'), pin('sums')])
    expect(pinned({ policy: { limits: {} } }, {})).toBeUndefined()
    expect(inRun({ policy: undefined }, {})).not.toHaveProperty('policy.models')
    expect(pinned({ policy: { limits: {}, models: [pin('own')] } }, {})).toBeUndefined()
  })
})

describe('the models that a runtime knows', () => {
  const model = (modelId: string) => scriptedModel([], modelId)
  const named = (modelId: string) => ({ provider: 'scripted', api: 'script', modelId })

  it('are those that were given, the last of one name first, and all of its agents', () => {
    const [first, second, third] = [model('a'), model('a'), model('b')]
    const [main, fallback, summing, shadowed] = [model('m'), model('f'), model('s'), model('a')]
    const agents = {
      all: () => [
        { model: main, fallbacks: [fallback], summarizer: summing },
        { model: shadowed, fallbacks: [] },
      ],
    }
    const known = new KnownModels(agents as never, [first])
    expect(known.find(named('a'))).toBe(first)
    known.add(third)
    known.add(second)
    expect(known.find(named('a'))).toBe(second)
    expect(known.find(named('b'))).toBe(third)
    expect(['m', 'f', 's'].map((name) => known.find(named(name)))).toEqual([main, fallback, summing])
    expect(known.find(named('none'))).toBeUndefined()
  })
})

describe('a run that was given a model', () => {
  it('is driven to its end with that one, though another is given to its resume meanwhile', async () => {
    let open = (): void => {}
    const until = new Promise<void>((resolve) => (open = resolve))
    const call = { toolCalls: [{ name: 'look', input: {} }] }
    const [given, other] = [
      scriptedModel([{ ...call, until }, { text: 'Seen.' }], 'given'),
      scriptedModel([{ text: 'Other.' }], 'other'),
    ]
    const { runtime, agent, waitUntilSettled } = stage({ tools: [testTool({ name: 'look' })] })
    const run = runtime.run(agent, 'Look.', { model: given })
    await new Promise((resolve) => run.events$.subscribe(resolve))
    const resumed = runtime.resume(run.id, { model: other }).result.catch((error: unknown) => error)
    open()
    expect(await waitUntilSettled(run.result)).toMatchObject({ reason: 'answered', text: 'Seen.' })
    await waitUntilSettled(resumed)
    expect([given, other].map(({ requests }) => requests.length)).toEqual([2, 0])
  })
})

function digestOfNode(text: string): string {
  return createHash('sha256').update(text).digest('hex')
}

let made = 0
/** A text that no test has asked for. */
const fresh = (): string => `A text of this test, number ${++made}.`

describe('a digest of the host', () => {
  it('is the one that core computes itself, whatever the text', async () => {
    const path = createRequire(join(import.meta.dirname, '../package.json')).resolve('@noble/hashes/sha2.js')
    const { sha256 } = (await import(pathToFileURL(path).href)) as {
      sha256: (bytes: Uint8Array) => Uint8Array
    }
    digestTextsWith(digestOfNode)
    for (const { text } of hostileTexts) {
      const own = Buffer.from(sha256(new TextEncoder().encode(toCanonicalJson(text)))).toString('hex')
      expect(computeDigest(text)).toBe(own)
    }
  })

  it('is refused where it is not a SHA-256 in hex', () => {
    const md5 = (text: string): string => createHash('md5').update(text).digest('hex')
    const upper = (text: string): string => digestOfNode(text).toUpperCase()
    for (const other of [md5, upper, () => '']) {
      expect(() => digestTextsWith(other)).toThrow('does not compute SHA-256 in hex')
    }
    expect(computeDigest(fresh())).toBe(digestOfNode(toCanonicalJson(`A text of this test, number ${made}.`)))
  })
})

// Runs that continue from what a provider keeps: each model that they may call has to be able to.

const keeping = (id: string): Model => ({ ...scriptedModel([{ text: 'Well.' }], id), keepsState: true })
const forgetting = (id: string): Model => scriptedModel([{ text: 'Well.' }], id)

function agentOf(model: Model, options: Partial<AgentOptions> = {}): Agent {
  return defineAgent({ name: 'desk', description: 'Helps.', instructions: 'Help.', model, ...options })
}

async function played(agent: Agent, options: RunOptions) {
  const [clock, ledger] = [manualClock(), memoryLedger()]
  const run = createRuntime({ ledger, host: { clock } }).run(agent, 'Go.', options)
  const { reason } = (await waitUntilSettled(clock, run.result)) as { readonly reason?: string }
  const [start] = ofType(await recorded(ledger, run.id), 'run_started')
  return { reason, state: start?.providerState }
}

describe('a run that continues from what a provider keeps', () => {
  it.each<readonly [string, RunOptions]>([
    ['a response', { previousResponseId: 'resp_1' }],
    ['a conversation', { conversationId: 'conv_1' }],
  ])('begins from %s, where every model of its agents keeps it', async (_what, options) => {
    const next = defineAgent({
      name: 'next',
      description: 'Knows.',
      instructions: '',
      model: keeping('third'),
    })
    const agent = agentOf(keeping('first'), { fallbacks: [keeping('second')], handoffs: [next] })
    expect(await played(agent, options)).toEqual({ reason: 'answered', state: options })
  })

  it('begins with a model of its own, where that keeps it and the model of its agent does not', async () => {
    const options = { previousResponseId: 'resp_1', model: keeping('own') }
    expect(await played(agentOf(forgetting('first')), options)).toMatchObject({ reason: 'answered' })
  })

  it.each<readonly [string, Agent, RunOptions, RegExp]>([
    ['its model', agentOf(forgetting('first')), {}, /model first of the agent desk/],
    [
      'a fallback',
      agentOf(keeping('first'), { fallbacks: [keeping('second'), forgetting('third')] }),
      {},
      /model third of the agent desk/,
    ],
    [
      'the model of the run',
      agentOf(keeping('first')),
      { model: forgetting('own') },
      /model own of the agent desk/,
    ],
    [
      'an agent that takes over',
      agentOf(keeping('first'), {
        handoffs: [
          defineAgent({ name: 'next', description: 'Knows.', instructions: '', model: forgetting('other') }),
        ],
      }),
      {},
      /model other of the agent next/,
    ],
  ])('is refused where %s keeps nothing', (_who, agent, options, message) => {
    const runtime = createRuntime({ ledger: memoryLedger() })
    expect(() => runtime.run(agent, 'Go.', { ...options, previousResponseId: 'resp_1' })).toThrow(message)
    expect(() => runtime.run(agent, 'Go.', { ...options, conversationId: 'conv_1' })).toThrow(
      /^run: conversationId/,
    )
  })

  it('is refused where it is given both', () => {
    const runtime = createRuntime({ ledger: memoryLedger() })
    const options = { previousResponseId: 'resp_1', conversationId: 'conv_1' }
    expect(() => runtime.run(agentOf(keeping('first')), 'Go.', options as never)).toThrow(/one of the two/)
  })
})

// An option that is `undefined` says what leaving it out says: under `exactOptionalPropertyTypes` a caller may pass it on.

const none = undefined

it('a price without a rate is recorded without it', async () => {
  const inputUsd = 3
  const prices = {
    'acme-1': {
      ...{ inputUsd, outputUsd: 15, cacheReadUsd: none, source: none },
      longInput: [{ inputUsd: 6, outputUsd: 30, aboveInputTokens: 200_000, cacheWriteUsd: none }],
    },
  }
  const usage = { inputTokens: 300_000, outputTokens: 10, reasoningTokens: none }
  const model = scriptedModel([{ text: 'Done.', usage }], 'acme-1')
  const agent = defineAgent({ name: 'a', instructions: '', model })
  const [ledger, clock] = [memoryLedger(), manualClock()]
  const run = createRuntime({ ledger, prices, host: { clock, random: none } }).run(agent, 'Go.')
  const { costUsd } = await waitUntilSettled(clock, run.result)
  expect(costUsd).toBeCloseTo(0.3 * 6 + 10 * 30e-6)
  const [started] = await recorded(ledger, run.id)
  const price = started?.type === 'run_started' ? started.definition.price : undefined
  expect(Object.keys(price ?? {}).toSorted()).toEqual(['inputUsd', 'longInput', 'outputUsd'])
  expect(Object.keys(price?.longInput?.[0] ?? {})).not.toContain('cacheWriteUsd')
})

it('a call of a tool in a test keeps what is given without it', async () => {
  const look = testTool({ name: 'look', effect: none, run: none })
  await callTool(look, {}, { turn: none, attempt: none, toolCallId: none })
  const [run] = look.runs
  expect([run?.turn, run?.attempt, typeof run?.toolCallId, run?.idempotencyKey]).toEqual([
    ...[1, 1, 'string', run?.toolCallId],
  ])
})

it('a decision in a test is made at the time at which it is made without it', () => {
  const failure = { class: 'server', message: 'The server failed.', retryable: true } as const
  const failed = { type: 'model_failed', turn: 1, attempt: 1, failure } as const
  const { decision } = given([...begun(), called()]).when(failed, { at: none, random: none })
  expect(decision).toEqual(given([...begun(), called()]).when(failed).decision)
  expect(JSON.stringify(decision)).toMatch(/"retryAt":\d+/)
})

it('a search of a ledger is as wide as without it', async () => {
  const ledger = memoryLedger()
  const agent = defineAgent({ name: 'a', instructions: '', model: scriptedModel([{ text: 'Done.' }]) })
  const { runId, seq } = await createRuntime({ ledger }).run(agent, 'Go.', { deadline: none }).result
  const query = {
    runId,
    sessionId: none,
    turn: none,
    toolCallId: none,
    types: none,
    fromAt: none,
    toAt: none,
  }
  expect((await Array.fromAsync(ledger.find(query))).length).toBe(seq)
  expect((await Array.fromAsync(ledger.read(runId, { fromSeq: none, toSeq: none }))).length).toBe(seq)
  expect(await Array.fromAsync(ledger.runs({ sessionId: none, before: none, limit: none }))).toHaveLength(1)
})
