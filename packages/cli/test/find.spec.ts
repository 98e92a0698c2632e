import { readFile } from 'node:fs/promises'
import {
  createRuntime,
  defineAgent,
  type RunResult,
  type Ledger,
  memoryLedger,
  type RunId,
} from '@tallystick/core'
import { type EventSearch, type FoundEvent, searchEvents } from '@tallystick/ledger'
import { sqliteLedger } from '@tallystick/ledger/sqlite'
import {
  scriptedModel,
  testTool,
  sampleRunId,
  sampleFacts,
  stampFacts,
  sampleCallId,
  sampleMessage,
} from '@tallystick/testkit'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { findCall, findRun } from '../src/runs/find-run.ts'
import { measureText } from '../src/terminal/text-width.ts'
import { openShop, type Shop } from './kit/shop.ts'
import { json, tallystickHere, tallystickRead } from './kit/tallystick.ts'

/** Orders an item that there is, then one that there is not, whose search throws. */
function buyer() {
  const model = scriptedModel([
    {
      text: '注文します。',
      toolCalls: [{ name: 'search', input: { item: { sku: 'tea', count: 2 }, tags: ['hot'] } }],
    },
    { toolCalls: [{ name: 'search', input: { item: { sku: 'gold', count: 1 }, tags: [] } }] },
    { text: 'There is no gold.', usage: { inputTokens: 30, outputTokens: 7 } },
  ])
  const search = testTool({
    name: 'search',
    run: ({ input }) => {
      if (JSON.stringify(input).includes('gold')) throw new Error('the warehouse is closed')
      return '2 boxes on shelf 7'
    },
  })
  return defineAgent({ name: '買い手', instructions: 'Buy.', model, tools: [search] })
}

describe('what is on record of many runs', () => {
  let shop: Shop
  let bought: RunResult
  let waiting: RunResult
  beforeAll(async () => {
    shop = await openShop()
    const ledger = sqliteLedger(shop.ledgerPath)
    const agent = buyer()
    bought = await createRuntime({ ledger, agents: [agent] }).run(
      agent,
      'お茶と金を二つずつ注文してください。',
    ).result
    await ledger.close()
    waiting = await shop.start()
  })
  afterAll(() => shop[Symbol.asyncDispose]())

  const found = async (...words: readonly string[]) => {
    const { code, stdout } = await tallystickHere('find', shop.ledgerPath, '--json', ...words)
    expect(code).toBe(0)
    return stdout === '' ? [] : (stdout.trimEnd().split('\n').map(json) as readonly Record<string, unknown>[])
  }

  it('is found by tool and outcome', async () => {
    expect(await found('--tool', 'search')).toMatchObject([
      { runId: bought.runId, tool: 'search', outcome: 'success', input: { item: { sku: 'tea', count: 2 } } },
      { runId: bought.runId, tool: 'search', outcome: 'failed', input: { item: { sku: 'gold', count: 1 } } },
    ])
    expect(await found('--tool', 'search', '--outcome', 'failed')).toMatchObject([
      { input: { item: { sku: 'gold' } } },
    ])
    expect(await found('--outcome', 'timed_out')).toEqual([])
    // A call that waits has no outcome, and is found all the same.
    const [open] = await found('--tool', 'pay')
    expect(open).toMatchObject({ runId: waiting.runId, tool: 'pay', input: { usd: 5 } })
    expect(open).not.toHaveProperty('outcome')
  })

  it('is found by the value at a path of the input', async () => {
    expect(await found('--input', 'item.sku=tea')).toHaveLength(1)
    expect(await found('--input', 'item.count=1')).toMatchObject([{ outcome: 'failed' }])
    expect(await found('--input', 'item.sku=tea', '--input', 'item.count=1')).toEqual([])
    expect(await found('--input', 'tags.0=hot')).toHaveLength(1)
    expect(await found('--input', 'constructor.name=Object')).toEqual([])
    expect((await tallystickHere('find', shop.ledgerPath, '--input', 'tea')).code).toBe(2)
  })

  it('is found by text, in all messages', async () => {
    expect(await found('--text', 'WAREHOUSE')).toMatchObject([{ tool: 'search', outcome: 'failed' }])
    expect((await found('--text', '注文')).map(({ type }) => type)).toEqual([
      'input_received',
      'assistant_message_finished',
    ])
    expect(await found('--text', 'no gold')).toMatchObject([{ type: 'assistant_message_finished' }])
    expect(await found('--text', 'shelf 7', '--run', waiting.runId)).toEqual([])
    expect(await found('--text', '注文', '--session', 'none')).toEqual([])
  })

  it('is found by time', async () => {
    expect(await found('--tool', 'search', '--since', '1d')).toHaveLength(2)
    expect(await found('--tool', 'search', '--until', '2020-01-01')).toEqual([])
    expect(await found('--tool', 'search', '--limit', '1')).toHaveLength(1)
  })

  it('is printed a line each, which a terminal does not break, with the command that shows one whole', async () => {
    const plain = await tallystickHere('find', shop.ledgerPath, '--text', 'boxes')
    expect(plain.stdout).toMatch(
      new RegExp(`^${bought.runId} +\\d+ {2}\\S+Z {2}search success \\{.*\\} 2 boxes on shelf 7\\n$`),
    )
    expect(plain.stderr).toBe('')
    const { stdout, stderr } = await tallystickRead(80, 'find', shop.ledgerPath, '--text', '注文')
    const lines = stdout.trimEnd().split('\n')
    expect(lines).toHaveLength(2)
    expect(lines.every((line) => measureText(line) <= 80)).toBe(true)
    expect(stderr).toMatch(/tallystick show \S+ \S+ --event \d+\n$/)
    expect((await tallystickHere('find', shop.ledgerPath)).code).toBe(2)
  })

  it('is nothing where nothing fits, which people read on stderr and programs see', async () => {
    const words = ['find', shop.ledgerPath, '--text', 'no such words']
    const said = 'Nothing of the kind is on record.\n'
    expect(await tallystickHere(...words)).toMatchObject({ code: 0, stdout: '', stderr: said })
    expect(await tallystickRead(80, ...words)).toMatchObject({ code: 0, stdout: '', stderr: said })
    expect(await tallystickHere(...words, '--json')).toMatchObject({ code: 0, stdout: '', stderr: '' })
  })

  it('is listed one row a run at 80 columns: with cost, time, the worst thing that happened and the first words', async () => {
    const { stdout } = await tallystickRead(80, 'list', shop.ledgerPath)
    const [heads, ...rows] = stdout.trimEnd().split('\n')
    expect(heads).toMatch(/^RUN +STARTED +TOOK +COST +STATUS +INPUT$/)
    expect(rows).toHaveLength(2)
    for (const row of rows) expect(measureText(row)).toBeLessThanOrEqual(80)
    expect(rows[0]).toMatch(new RegExp(`^${waiting.runId.slice(-8)} .* waits: pay +Buy`))
    expect(rows[1]).toMatch(new RegExp(`^${bought.runId.slice(-8)} .* answered; search fail.* お茶と金`))
    const { stdout: shown } = await tallystickHere('show', shop.ledgerPath, bought.runId.slice(-8), '--json')
    expect(json(shown)).toMatchObject({ runId: bought.runId })
  })

  it('is listed by tool and outcome, and told to programs whole', async () => {
    const listed = async (...words: readonly string[]) => {
      const { stdout } = await tallystickHere('list', shop.ledgerPath, '--json', ...words)
      return stdout === ''
        ? []
        : (stdout.trimEnd().split('\n').map(json) as readonly { readonly runId: string }[])
    }
    expect(await listed('--tool', 'search', '--outcome', 'failed')).toMatchObject([
      {
        ...{ runId: bought.runId, input: 'お茶と金を二つずつ注文してください。', worst: 'search failed' },
        calls: [
          { name: 'search', outcome: 'success', count: 1 },
          { name: 'search', outcome: 'failed', count: 1 },
        ],
      },
    ])
    expect(await listed('--tool', 'pay', '--outcome', 'failed')).toEqual([])
    expect((await listed('--outcome', 'success')).map(({ runId }) => runId)).toEqual([
      waiting.runId,
      bought.runId,
    ])
    expect((await tallystickHere('list', shop.ledgerPath, '--outcome', 'bad')).code).toBe(2)
  })

  it('is compared one under the other where the terminal is narrow', async () => {
    const words = ['diff', shop.ledgerPath, bought.runId, waiting.runId]
    const { stdout } = await tallystickRead(80, ...words)
    expect(stdout).toContain(`\nLEFT           ${bought.runId}\n`)
    expect(stdout).toMatch(/^turn 1\n {2}left +\d+ .*(?:\n {8}.*)*\n {2}right +\d+ /m)
    for (const line of stdout.split('\n').slice(4)) expect(measureText(line)).toBeLessThanOrEqual(80)
    expect((await tallystickRead(200, ...words)).stdout).toMatch(/^ +LEFT +RIGHT$/m)
    expect(await readFile(shop.ledgerPath)).toBeDefined()
  })
})

/** Finds a call among those that wait, without a look at the ledger. */
const found = async (given: string, ...ids: readonly string[]): Promise<string> => {
  const waiting = ids.map((toolCallId) => ({ toolCallId, runId: sampleRunId(1) }) as never)
  const search = { named: sampleRunId(1), waiting, awaited: 'an approval', show: 'show it' }
  const call: { readonly toolCallId: string } = await findCall(given, { ledger: {} as Ledger, ...search })
  return call.toolCallId
}

it('a call that waits is found by its whole id, also where that is an end of another one', async () => {
  expect(await found('call_1', 'other_call_1', 'call_1')).toBe('call_1')
})

it.each([
  ['', ['a'], 'Name the call by its id, or by an end of it. Waiting: a.'],
  ['', [], 'Name the call by its id, or by an end of it. Waiting: none.'],
  [
    'x',
    ['a', 'b'],
    `No call x of run ${sampleRunId(1)} or of its child runs waits for an approval. Waiting: a, b. See the run: show it`,
  ],
])('a call named %j is not found among %j', async (given, ids, message) => {
  await expect(found(given, ...ids)).rejects.toThrow(message)
})

const { run_started: started } = sampleFacts(sampleRunId(1))
const { parent: _parent, sessionId: _session, sessionPlace: _place, ...plain } = started
const place = { programName: 'tallystick', ledgerPath: 'runs.db' }
/** As the ids of runs that one millisecond began. */
const named = (end: string): RunId => `01932f00-0000-7000-8000-${end.padStart(12, '0')}` as RunId

/** A ledger of runs, in their order, each with its parent. */
async function ledgerOf(...runs: readonly (readonly [runId: RunId, worksFor?: RunId])[]) {
  const ledger = memoryLedger()
  for (const [runId, from] of runs) {
    const parent = from && { parent: { runId: from, seq: 1, relation: 'child' as const } }
    const events = stampFacts(runId, [{ ...plain, ...parent }])
    await ledger.append(runId, { expectedSeq: 0, epoch: 1 }, events, { durability: 'lazy' })
  }
  return ledger
}

describe('a run that is named on the command line', () => {
  const [top, child, other] = [named('abc1'), named('abc2'), named('f3')]

  it('is found by its id, and by a beginning or an end that no other has', async () => {
    const ledger = await ledgerOf([top], [other])
    expect(await findRun(ledger, top, place)).toBe(top)
    expect(await findRun(ledger, 'abc1', place)).toBe(top)
    expect(await findRun(ledger, '0f3', place)).toBe(other)
    expect(await findRun(await ledgerOf([top]), '01932f00', place)).toBe(top)
  })

  it('is rather one without a parent', async () => {
    const ledger = await ledgerOf([top], [child, top])
    expect(await findRun(ledger, '01932f00', place)).toBe(top)
    expect(await findRun(ledger, 'abc2', place)).toBe(child)
  })

  it('is the last one without a parent, if it is called latest', async () => {
    const ledger = await ledgerOf([other], [top], [child, top])
    const [last] = await Array.fromAsync(ledger.runs())
    const expected = last?.runId === child ? top : last?.runId
    expect(await findRun(ledger, 'latest', place)).toBe(expected)
    await expect(findRun(memoryLedger(), 'latest', place)).rejects.toMatchObject({ code: 'not_found' })
  })

  it('is not found under a name that fits none, or all', async () => {
    const ledger = await ledgerOf([top], [other])
    for (const given of ['nobody', '', named('99'), '32f00']) {
      await expect(findRun(ledger, given, place)).rejects.toMatchObject({
        code: 'not_found',
        message: `This ledger has no run ${given}. See its runs: tallystick list runs.db`,
      })
    }
  })

  it('has to be told from others, of which the first five are named', async () => {
    const ids = ['1', '2', '3', '4', '5', '6'].map(named)
    const five = await ledgerOf(...ids.slice(0, 5).map((runId) => [runId] as const))
    const refusal = (ledger: Awaited<ReturnType<typeof ledgerOf>>): Promise<string> =>
      findRun(ledger, '01932f00', place).catch((error: Error & { code: string }) => {
        return `${error.code}: ${error.message}`
      })
    const inOrder = async (ledger: typeof five): Promise<string> =>
      (await Array.fromAsync(ledger.runs()))
        .slice(0, 5)
        .map(({ runId }) => runId)
        .join(', ')
    const rest = 'Give more of the id. See all: tallystick list runs.db'
    expect(await refusal(five)).toBe(`usage: 01932f00 matches 5 runs (${await inOrder(five)}). ${rest}`)
    const six = await ledgerOf(...ids.map((runId) => [runId] as const))
    expect(await refusal(six)).toBe(`usage: 01932f00 matches 6 runs (${await inOrder(six)}, …). ${rest}`)
  })

  it('has to be distinguished from child runs of other ledgers, too', async () => {
    const [gone, one, two] = [named('9'), named('1'), named('2')]
    const ledger = await ledgerOf([one, gone], [two, gone])
    await expect(findRun(ledger, '01932f00', place)).rejects.toMatchObject({ code: 'usage' })
  })
})

describe('find', () => {
  const runId = sampleRunId(1)
  const fact = sampleFacts(runId)
  type Facts = Parameters<typeof stampFacts>[1]

  /** What is found in a run of these facts, which follow its start as events 2, 3 … */
  async function found(facts: Facts, finder: Partial<EventSearch> = {}): Promise<readonly FoundEvent[]> {
    const ledger = memoryLedger()
    const { sessionId: _session, sessionPlace: _place, parent: _parent, ...start } = fact.run_started
    const events = stampFacts(runId, [start, ...facts])
    await ledger.append(runId, { expectedSeq: 0, epoch: 1 }, events, { durability: 'lazy' })
    return await Array.fromAsync(searchEvents(ledger, { call: { inputs: [] }, ...finder }))
  }

  const said = (all: readonly FoundEvent[]): readonly unknown[] =>
    all.map(({ seq, type, text }) => [seq, type, text])

  describe('what was said', () => {
    it('given each kind of words, when no filter is given, then all of them are found in order', async () => {
      const { detail: _detail, ...finished } = fact.run_finished
      const tripped = { ...fact.guardrail_tripped, detail: undefined } as never
      const all = await found([
        { ...fact.input_received, message: sampleMessage('How warm is it?') },
        fact.guardrail_tripped,
        tripped,
        fact.model_stream_failed,
        fact.assistant_message_finished,
        fact.context_compacted,
        fact.cancel_requested,
        fact.limit_reached,
        finished,
      ])
      expect(said(all)).toEqual([
        [2, 'input_received', 'How warm is it?'],
        [3, 'guardrail_tripped', 'secrets A key was cut out.'],
        [4, 'guardrail_tripped', 'secrets'],
        [5, 'model_stream_failed', 'Try again later.'],
        [6, 'assistant_message_finished', 'Let me look'],
        [7, 'context_compacted', 'Weather was asked for.'],
        [8, 'cancel_requested', 'Enough.'],
        [10, 'run_finished', 'answered'],
      ])
      expect(all.every((each) => each.runId === runId && each.turn >= 0 && each.at > 0)).toBe(true)
      expect(await found([fact.run_finished])).toMatchObject([{ text: 'answered The model answered.' }])
    })

    it('given words without content, when they are searched, then nothing is found', async () => {
      const { reason: _reason, ...cancel } = fact.cancel_requested
      const nothing = { ...fact.assistant_message_finished, parts: [], places: [] }
      expect(await found([nothing, cancel])).toEqual([])
    })

    it('given a text, when it is asked for, then letters of either case are found, in any words', async () => {
      const facts = [fact.guardrail_tripped, fact.context_compacted, fact.cancel_requested]
      expect(said(await found(facts, { text: 'ENOUGH' }))).toEqual([[4, 'cancel_requested', 'Enough.']])
      expect(said(await found(facts, { text: 'cut' }))).toEqual([
        [2, 'guardrail_tripped', 'secrets A key was cut out.'],
      ])
      expect(await found(facts, { text: 'warm' })).toEqual([])
    })

    it('given facts whose content was removed, when they are searched, then they are passed over', async () => {
      const removed = { kind: 'redacted', at: 1, by: 'ada' } as const
      const gone = [fact.cancel_requested, fact.tool_request_ready, fact.tool_result].map(
        (each) => ({ ...each, content: undefined, removed }) as never,
      )
      expect(said(await found(gone))).toEqual([[4, 'tool_result', '']])
    })
  })

  describe('a call', () => {
    const toolCallId = fact.tool_request_ready.toolCallId
    const asked = { ...fact.tool_request_ready, input: { city: 'Seoul' } }
    const { calls } = fact.tool_requests_collected
    const changed = {
      ...fact.tool_requests_collected,
      calls: calls.slice(0, 1).map((call) => ({ ...call, toolCallId, input: { city: 'Busan' } })),
    }
    const decided = { ...fact.approval_decided, toolCallId, input: { city: 'Jeju' } }
    const ended = {
      ...fact.tool_result,
      toolCallId,
      outcome: 'success' as const,
      content: [{ type: 'text' as const, text: '21 degrees' }],
    }
    const open = { ...asked, toolCallId: sampleCallId(runId, 2) }
    const query = (call: Partial<EventSearch['call']>, text?: string): Partial<EventSearch> => ({
      call: { inputs: [], ...call },
      ...(text !== undefined && { text }),
    })

    it('given a call that has ended, when it is found, then at its result, with the input that ran', async () => {
      const result = { toolCallId, tool: 'get_weather', outcome: 'success', text: '21 degrees', turn: 1 }
      expect(await found([asked, ended])).toMatchObject([{ ...result, seq: 3, input: { city: 'Seoul' } }])
      expect(await found([asked, changed, ended])).toMatchObject([{ ...result, input: { city: 'Busan' } }])
      expect(await found([asked, changed, decided, ended])).toMatchObject([
        { ...result, seq: 5, input: { city: 'Jeju' } },
      ])
      expect(await found([ended])).toMatchObject([{ ...result, input: {} }])
    })

    it('given calls that are open, when calls are asked for, then they come last; not where an outcome is asked for', async () => {
      const facts = [open, asked, ended]
      expect(await found(facts)).toMatchObject([
        { seq: 4, type: 'tool_result' },
        { seq: 2, type: 'tool_request_ready', tool: 'get_weather', input: { city: 'Seoul' }, text: '' },
      ])
      expect(await found(facts, query({ outcome: 'success' }))).toMatchObject([{ seq: 4 }])
      expect(await found(facts, query({ outcome: 'failed' }))).toEqual([])
    })

    it('given a filter of calls, when events are searched, then what else was said is left out', async () => {
      const facts = [fact.cancel_requested, asked, ended]
      expect(await found(facts, query({ tool: 'get_weather' }))).toMatchObject([{ seq: 4 }])
      expect(await found(facts, query({ tool: 'get' }))).toEqual([])
      expect(await found([open], query({ tool: 'get' }))).toEqual([])
      expect(await found([open], query({ tool: 'get_weather' }))).toMatchObject([{ seq: 2 }])
    })

    it('given a value of an input, when calls are searched, then in what they ran with, or were asked for', async () => {
      const citiesOf = async (value: string, facts: Facts): Promise<readonly unknown[]> =>
        (await found(facts, query({ inputs: [{ path: ['city'], value }] }))).map(({ input }) => input)
      const jeju = [{ city: 'Jeju' }]
      for (const facts of [
        [asked, decided],
        [asked, decided, ended],
      ]) {
        expect([await citiesOf('Jeju', facts), await citiesOf('Seoul', facts)]).toEqual([jeju, jeju])
      }
      expect(await citiesOf('Busan', [asked, changed])).toEqual([{ city: 'Busan' }])
    })

    it('given a text, when calls are searched, then in name, input and answer', async () => {
      for (const text of ['GET_WEATHER', 'seoul', '21 DEG', 'get_weather {"city"']) {
        expect(await found([asked, ended, open], query({}, text))).toHaveLength(text === '21 DEG' ? 1 : 2)
      }
      expect(await found([asked, ended, open], query({}, 'Busan'))).toEqual([])
    })
  })
})
