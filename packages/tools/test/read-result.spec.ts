import {
  agentTool,
  ConfigurationError,
  createRuntime,
  defineAgent,
  defineGuardrail,
  type Ledger,
  memoryLedger,
  type RunId,
  type RunOptions,
  type RuntimeEvent,
  joinText,
  foldedHistory,
  handoff,
  type Message,
} from '@tallystick/core'
import { type EventOf, extractRunId, type ToolCallId, deriveToolCallId } from '@tallystick/core/vocabulary'
import { callTool, sampleRunId, scriptedModel, testTool, type ScriptedStep } from '@tallystick/testkit'
import { defineTool, readResult, text as textPart } from '@tallystick/tools'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'

// Which part of a result is read, and whose results: what an agent may read of runs beside its own.

type Guardrails = Parameters<typeof defineAgent>[0]['guardrails']

/** Runs on one ledger: `look` returns the text, and `read_result` reads a call of it, in the ledger `seen`. */
function stage(
  text: string,
  {
    ledger = memoryLedger(),
    seen = ledger,
    guardrails,
  }: { ledger?: Ledger; seen?: Ledger; guardrails?: Guardrails } = {},
) {
  const look = { ...testTool({ name: 'look', run: () => text }), maxResultChars: 100 }
  const play = async (calls: readonly (readonly [name: string, input: object])[], given: RunOptions = {}) => {
    const steps = calls.map(([name, input]) => ({ toolCalls: [{ name, input: input as never }] }))
    const agent = defineAgent({
      ...{ name: 'a', instructions: '', tools: [look, readResult({ ledger: seen, maxChars: 100 })] },
      ...(guardrails && { guardrails }),
      model: scriptedModel([...steps, { text: 'Done.' }]),
    })
    const { runId } = await createRuntime({ ledger, agents: [agent] }).run(agent, 'Go.', given).result
    const results: EventOf<'tool_result'>[] = []
    for await (const event of ledger.find({ runId, types: ['tool_result'] }))
      if (event.type === 'tool_result') results.push(event)
    return { runId, results, last: joinText(results.at(-1)?.content ?? []) }
  }
  const looked = async (given?: RunOptions) => {
    const { runId, results } = await play([['look', {}]], given)
    return { runId, call: results[0]!.toolCallId, seq: results[0]!.seq }
  }
  const reading = async (call: ToolCallId | string, more: object = {}, given?: RunOptions) =>
    (
      await play(
        [
          ['look', {}],
          ['read_result', { call, ...more }],
        ],
        given,
      )
    ).last
  return { play, looked, reading, ledger }
}

describe('the part of a result', () => {
  const parts = async (text: string, asked: readonly object[]): Promise<readonly string[]> => {
    const { looked, reading } = stage(text)
    const { call } = await looked({ sessionId: 's' })
    const read: string[] = []
    for (const each of asked) read.push(await reading(call, each, { sessionId: 's' }))
    return read
  }

  it('begins and ends between characters', async () => {
    const text = `a😀${'-'.repeat(97)}\u{10000}\uffffb${'='.repeat(50)}`
    expect(
      await parts(text, [{ from: 2 }, { from: 3 }, { from: 0 }, { from: 101 }, { from: 102 }, { from: 103 }]),
    ).toEqual([
      // In the middle of its first and of its second long character.
      `Characters 1 to 100 of ${text.length}. The next part begins at 100.\n${text.slice(1, 100)}`,
      `Characters 3 to 103 of ${text.length}. The next part begins at 103.\n${text.slice(3, 103)}`,
      `Characters 0 to 100 of ${text.length}. The next part begins at 100.\n${text.slice(0, 100)}`,
      `Characters 100 to ${text.length} of ${text.length}. This is its end.\n${text.slice(100)}`,
      `Characters 102 to ${text.length} of ${text.length}. This is its end.\n${text.slice(102)}`,
      `Characters 103 to ${text.length} of ${text.length}. This is its end.\n${text.slice(103)}`,
    ])
  })

  it('is not there where the result has ended', async () => {
    const text = '-'.repeat(300)
    expect(await parts(text, [{ from: 299 }, { from: 300 }])).toEqual([
      'Characters 299 to 300 of 300. This is its end.\n-',
      'The result has 300 characters: there is nothing from 300 on.',
    ])
  })
})

describe('a result of another run', () => {
  const text = Array.from({ length: 100 }, (_, at) => `line ${at}`).join('\n')
  /** It is never cut, so that it is shown alike in each run. */
  const short = 'The same in each run.'
  const refused = /^There is no result of a call/

  it.each<[string, RunOptions, RunOptions]>([
    ['another session', { sessionId: 'theirs' }, { sessionId: 'mine' }],
    ['no session, as this one', {}, {}],
    ['a session', { sessionId: 'theirs' }, {}],
  ])('of %s is not read, though the same was shown here', async (_what, theirs, mine) => {
    const { looked, reading } = stage(short)
    const { call } = await looked(theirs)
    expect(await reading(call, {}, mine)).toMatch(refused)
  })

  it('is read up to where a branch of it begins', async () => {
    const { looked, reading } = stage(text)
    const { runId, call, seq } = await looked({ sessionId: 's' })
    const from = (atSeq: number) => ({ sessionId: `b${atSeq}`, from: { runId, atSeq } })
    expect(await reading(call, {}, from(seq))).toMatch(/^Characters 0 to 100/)
    expect(await reading(call, {}, from(seq + 1))).toMatch(/^Characters 0 to 100/)
  })

  it('is not read where it came after the place at which a branch of its run begins, though the same was shown here', async () => {
    const { looked, reading } = stage(short)
    const { runId, call, seq } = await looked({ sessionId: 's' })
    const before = { sessionId: 'b', from: { runId, atSeq: seq - 1 } }
    expect(await reading(call, {}, before)).toMatch(refused)
  })

  it('is not read in a child run of the run that has it, though the same was shown there', async () => {
    const ledger = memoryLedger()
    let own: RunId | undefined
    const looks = { toolCalls: [{ name: 'look', input: {} }] }
    const look = { ...testTool({ name: 'look', run: () => short }), maxResultChars: 100 }
    const child = defineAgent({
      ...{ name: 'child', description: 'Looks.', instructions: '', tools: [look, readResult({ ledger })] },
      model: scriptedModel([
        looks,
        () => ({ toolCalls: [{ name: 'read_result', input: { call: deriveToolCallId(own!, 1, 1, 1) } }] }),
        ({ messages }) => {
          const last = messages.at(-1)
          return { text: last?.role === 'tool' ? joinText(last.results[0]?.content ?? []) : '' }
        },
      ]),
    })
    const parent = defineAgent({
      ...{ name: 'parent', instructions: '', tools: [look, agentTool(child)] },
      model: scriptedModel([
        looks,
        { toolCalls: [{ name: 'child', input: { task: 'Look.' } }] },
        { text: 'Done.' },
      ]),
    })
    const run = createRuntime({ ledger, agents: [parent] }).run(parent, 'Go.')
    own = run.id
    const { messages } = await run.result
    expect(JSON.stringify(messages)).toContain(
      `There is no result of a call ${deriveToolCallId(own, 1, 1, 1)}`,
    )
  })

  it.each<[string, number, RegExp]>([
    ['is read by the last of fifty runs', 49, /^Characters 0 to 21 of 21/],
    ['is not looked for over more', 50, refused],
  ])('that began a conversation %s', async (_what, between, expected) => {
    const ledger = memoryLedger()
    const { call } = await stage(short, { ledger }).looked({ sessionId: 'first' })
    const chain = Array.from({ length: between }, (_, index) => sampleRunId(index))
    // The run that reads is a branch of the first run of the chain, and so on; the last of them is of the session.
    const seen: Ledger = Object.assign(Object.create(ledger) as Ledger, {
      read: async function* (runId: RunId, ...range: [] | [object]) {
        const at = chain.indexOf(runId)
        for await (const event of ledger.read(at === -1 ? runId : extractRunId(call)!, ...range)) {
          const { sessionId, ...start } = event as EventOf<'run_started'>
          const next = chain[at + 1]
          const isOfSession = next === undefined || (at === -1 && sessionId !== undefined)
          yield isOfSession ? event : { ...start, parent: { runId: next, seq: 1, relation: 'branch' } }
        }
      },
    })
    expect(await stage(short, { ledger, seen }).reading(call)).toMatch(expected)
  })

  it('is named in a refusal by its first hundred characters', async () => {
    const long = 'c'.repeat(101)
    expect(await stage(text).reading(long)).toMatch(new RegExp(`of a call c{100} in this conversation`))
  })

  it('is not read once its content was removed', async () => {
    const ledger = memoryLedger()
    const { runId, call } = await stage(text, { ledger }).looked({ sessionId: 's' })
    const removing: Ledger = Object.assign(Object.create(ledger) as Ledger, {
      find: async function* (query: Parameters<Ledger['find']>[0]) {
        for await (const event of ledger.find(query))
          yield event.runId === runId ? { ...event, removed: { at: 1, reason: 'asked' } } : event
      },
    })
    expect(await stage(text, { ledger: removing }).reading(call, {}, { sessionId: 's' })).toBe(
      'The content of this result was removed, and cannot be read any more.',
    )
  })
})

describe('a result of the own run that the conversation shows no more', () => {
  /** What an agent without its conversation reads of a result, when this event is on record so long after it. */
  async function readAfter(after: number, event: object): Promise<string> {
    const ledger = memoryLedger()
    const { runId, call, seq } = await stage('-'.repeat(300), { ledger }).looked()
    const seen: Ledger = Object.assign(Object.create(ledger) as Ledger, {
      find: async function* (query: Parameters<Ledger['find']>[0]) {
        yield* ledger.find(query)
        const [found] = await Array.fromAsync(ledger.read(runId, { toSeq: 1 }))
        const fact = { ...found!, seq: seq + after, ...event } as unknown as RuntimeEvent
        if (query?.types?.includes(fact.type)) yield fact
      },
    })
    return (await callTool(readResult({ ledger: seen }), { call }, { runId })).text
  }

  it.each<[string, number, object, RegExp]>([
    ['an agent handed over all of it since', 1, { type: 'agent_handed_off' }, /^Characters 0 to 300/],
    [
      'an agent handed over a part of it since',
      1,
      { type: 'agent_handed_off', messages: [] },
      /^There is no result/,
    ],
    [
      'an agent handed over a part of it before',
      -1,
      { type: 'agent_handed_off', messages: [] },
      /^Characters 0 to 300/,
    ],
    ['it was edited since', 1, { type: 'history_edited' }, /^There is no result/],
    ['it was edited before', -1, { type: 'history_edited' }, /^Characters 0 to 300/],
  ])('given that %s, when it is read, then the answer follows', async (_what, after, event, expected) => {
    expect(await readAfter(after, event)).toMatch(expected)
  })
})

describe('a result in several parts', () => {
  it('is read in a later run as its projection was shown, and not where a part of that was taken out', async () => {
    const ledger = memoryLedger()
    const look = defineTool({
      ...{ name: 'look', description: 'Looks.', input: { type: 'object' }, effect: 'read' },
      execute: () => ['a secret'],
      toModel: () => [textPart('first part'), textPart('second part')],
    })
    const tools = [look, readResult({ ledger })]
    const model = (...steps: Parameters<typeof scriptedModel>[0]) => scriptedModel(steps)
    const first = defineAgent({
      ...{ name: 'a', instructions: '', tools },
      model: model({ toolCalls: [{ name: 'look', input: {} }] }, { text: 'Seen.' }),
    })
    const { runId: of, messages } = await createRuntime({ ledger, agents: [first] }).run(first, 'Go.', {
      sessionId: 's',
    }).result
    const call = deriveToolCallId(of, 1, 1, 1)
    const read = async (given: RunOptions): Promise<string> => {
      const next = defineAgent({
        ...{ name: 'a', instructions: '', tools },
        model: model({ toolCalls: [{ name: 'read_result', input: { call } }] }, { text: 'Done.' }),
      })
      const { messages: after } = await createRuntime({ ledger, agents: [next] }).run(next, 'And?', given)
        .result
      const last = after.findLast(({ role }) => role === 'tool')
      return last?.role === 'tool' ? joinText(last.results[0]?.content ?? []) : ''
    }
    const index = messages.findIndex(({ role }) => role === 'tool')
    const shown = messages[index]
    if (shown?.role !== 'tool') throw new Error('nothing was looked at')
    const results = shown.results.map((result) => ({ ...result, content: result.content.slice(0, 1) }))
    const edit = { of, edits: [{ index, message: { ...shown, results } }] }
    expect(await read({ sessionId: 'b', from: { runId: of }, edit })).toMatch(/^There is no result of a call/)
    expect(await read({ sessionId: 's' })).toMatch(
      /^Characters 0 to \d+ of \d+\. This is its end\.\nfirst part\s*second part$/,
    )
  })
})

describe('readResult', () => {
  it.each([{}, { ledger: {} }, { maxChars: 99 }, { maxChars: 100.5 }])('refuses %j', (given) => {
    const ledger = 'maxChars' in given ? { ledger: memoryLedger() } : {}
    expect(() => readResult({ ...ledger, ...given } as never)).toThrow(ConfigurationError)
  })
})

describe('a result that a guardrail looked at', () => {
  it('is read where only the input of its call was changed', async () => {
    const guardrail = defineGuardrail({
      name: 'g',
      on: 'tool_input',
      check: ({ name }) => (name === 'look' ? { replace: {} } : 'pass'),
    })
    const { looked, reading } = stage('-'.repeat(300), { guardrails: [guardrail] })
    const { call } = await looked({ sessionId: 's' })
    expect(await reading(call, {}, { sessionId: 's' })).toMatch(/^Characters 0 to 100/)
  })

  it.each([
    ['records', { record: 'seen' }],
    ['passes', 'pass'],
  ])('is read where it only %s', async (_what, verdict) => {
    const guardrail = defineGuardrail({ name: 'g', on: 'tool_output', check: () => verdict as never })
    const { looked, reading } = stage('-'.repeat(300), { guardrails: [guardrail] })
    const { call } = await looked({ sessionId: 's' })
    expect(await reading(call, {}, { sessionId: 's' })).toMatch(/^Characters 0 to 100/)
  })
})

// The ids of calls can be guessed: read_result reads what its agent was shown, and nothing that was taken from it.

const long = Array.from({ length: 100 }, (_, index) => `line ${index}\u0085`).join('\n')

/** A ledger, and a tool with a long result. */
function shop() {
  const ledger = memoryLedger()
  const look = defineTool({
    name: 'look',
    description: 'Looks.',
    input: z.object({}),
    effect: 'read',
    maxResultChars: 200,
    execute: () => long,
  })
  return { ledger, tools: [look, readResult({ ledger })] }
}

const looks: ScriptedStep = { toolCalls: [{ name: 'look', input: {} }] }
const transfers: ScriptedStep = { toolCalls: [{ name: 'transfer_to_second', input: { reason: 'yours' } }] }
/** Reads the first call of a run, which can be derived from the run's id alone. */
const reads = (runId: () => RunId): ScriptedStep => {
  return () => ({
    toolCalls: [
      { name: 'read_result', input: { call: deriveToolCallId(runId(), 1, 1, 1), find: 'line 50' } },
    ],
  })
}
const isRead = /^Characters \d+ to \d+ of \d+\. This is its end\.\nline 50/
const isRefused = /^There is no result of a call/

/** What `read_result` answered last in a run. */
async function answered(ledger: ReturnType<typeof memoryLedger>, runId: RunId): Promise<string> {
  const results: EventOf<'tool_result'>[] = []
  for await (const event of ledger.read(runId)) if (event.type === 'tool_result') results.push(event)
  const last = results.findLast(({ name }) => name === 'read_result')
  return joinText(last?.content ?? [])
}

describe('read_result after a handoff', () => {
  type Filter = ((messages: readonly Message[]) => readonly Message[]) | undefined
  const onlyUser: Filter = (messages) => messages.filter(({ role }) => role === 'user')

  it.each<[string, Filter, RegExp]>([
    ['all of the conversation', undefined, isRead],
    ['the conversation folded into one text', foldedHistory, isRead],
    ['only what the user said', onlyUser, isRefused],
  ])(
    'given an agent that is shown %s, when it reads the call, then it gets what it was shown',
    async (_name, filter, expected) => {
      const { ledger, tools } = shop()
      let own: RunId | undefined
      const second = defineAgent({
        ...{ name: 'second', instructions: 'Go on.', tools },
        model: scriptedModel([reads(() => own!), { text: 'Done.' }], 'second'),
      })
      const first = defineAgent({
        ...{ name: 'first', instructions: 'Begin.', tools, handoffs: [handoff(second, { filter })] },
        model: scriptedModel([looks, transfers]),
      })
      const run = createRuntime({ ledger, agents: [first] }).run(first, 'Look.')
      own = run.id
      expect(await run.result).toMatchObject({ reason: 'answered', agent: 'second' })
      expect(await answered(ledger, run.id)).toMatch(expected)
    },
  )
})

describe('read_result in a conversation', () => {
  /** A run that looks, and one that begins with its history and reads what the first one saw. */
  async function later(options: (first: RunId) => RunOptions): Promise<string> {
    const { ledger, tools } = shop()
    let before: RunId | undefined
    const model = scriptedModel([looks, { text: 'Seen.' }, reads(() => before!), { text: 'Done.' }])
    const agent = defineAgent({ name: 'a', instructions: 'Look.', model, tools })
    const runtime = createRuntime({ ledger, agents: [agent] })
    const first = runtime.run(agent, 'Look.', { sessionId: 's' })
    before = first.id
    await first.result
    const second = runtime.run(agent, 'And?', options(first.id))
    expect(await second.result).toMatchObject({ reason: 'answered' })
    return await answered(ledger, second.id)
  }

  it('reads on in the next run, and not where the past was edited', async () => {
    expect(await later(() => ({ sessionId: 's' }))).toMatch(isRead)
    const edits = [{ index: 1 }, { index: 2 }]
    expect(await later((of) => ({ sessionId: 's', edit: { of, edits } }))).toMatch(isRefused)
  })

  const compaction = { maxContextTokens: 150, keepMessages: 1, summarize: () => 'It looked.' }

  it.each([
    ['by the same agent', false],
    ['by the agent that took over all of it', true],
  ])('reads what a summary took out of the conversation of its run since, %s', async (_name, handsOver) => {
    const { ledger, tools } = shop()
    let own: RunId | undefined
    let seen: readonly Message[] = []
    const reading: ScriptedStep = ({ messages }) => {
      seen = messages
      const input = { call: deriveToolCallId(own!, 1, 1, 1), find: 'line 50' }
      return { toolCalls: [{ name: 'read_result', input }] }
    }
    const second = defineAgent({
      ...{ name: 'second', instructions: 'Go on.', tools, compaction },
      model: scriptedModel([reading, { text: 'Done.' }], 'second'),
    })
    const steps = handsOver ? [transfers] : [reading, { text: 'Done.' }]
    const first = defineAgent({
      ...{ name: 'first', instructions: 'Look.', tools, compaction, handoffs: [second] },
      model: scriptedModel([looks, looks, ...steps]),
    })
    const run = createRuntime({ ledger, agents: [first] }).run(first, 'Look.')
    own = run.id
    expect(await run.result).toMatchObject({ agent: handsOver ? 'second' : 'first' })
    expect(await answered(ledger, run.id)).toMatch(isRead)
    expect(JSON.stringify(seen)).toContain('It looked.')
    expect(JSON.stringify(seen)).not.toContain(deriveToolCallId(run.id, 1, 1, 1))
  })

  it('reads nothing where the call belongs to no conversation', async () => {
    const { ledger, tools } = shop()
    const call = deriveToolCallId('01a1f640-bde3-73dc-bf21-6c8878abbb86' as RunId, 1, 1, 1)
    expect(await callTool(readResult({ ledger }), { call })).toMatchObject({ outcome: 'failed' })
    expect(tools).toHaveLength(2)
  })
})

describe('the messages that a tool is lent', () => {
  it('are those of the model, up to the one that asked, and cannot be changed', async () => {
    const lent: (readonly Message[])[] = []
    const peek = defineTool({
      name: 'peek',
      description: 'Peeks.',
      input: z.object({}),
      effect: 'read',
      execute: (_input, { messages }) => void lent.push(messages()),
    })
    const step = { toolCalls: [{ name: 'peek', input: {} }] }
    const model = scriptedModel([step, step, { text: 'Done.' }])
    const agent = defineAgent({ name: 'a', instructions: 'Peek.', model, tools: [peek] })
    await createRuntime({ ledger: memoryLedger(), agents: [agent] }).run(agent, 'Go.').result
    expect(lent.map((messages) => messages.map(({ role }) => role))).toEqual([
      ['user', 'assistant'],
      ['user', 'assistant', 'tool', 'assistant'],
    ])
    expect(lent[1]?.slice(0, 3)).toEqual(model.requests[1]?.messages)
    const frozen = lent.flat().map((message) => Object.isFrozen(message))
    expect(new Set(frozen)).toEqual(new Set([true]))
    await callTool(peek, {})
    expect(lent[2]).toEqual([])
  })
})
