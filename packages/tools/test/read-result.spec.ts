// Which part of a result is read, and whose results: what an agent may read of runs beside its own.
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
} from '@tallystick/core'
import { type EventOf, extractRunId, type ToolCallId, deriveToolCallId } from '@tallystick/core/vocabulary'
import { callTool, sampleRunId, scriptedModel, testTool } from '@tallystick/testkit'
import { defineTool, readResult, text as textPart } from '@tallystick/tools'
import { describe, expect, it } from 'vitest'

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
