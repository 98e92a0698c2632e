import {
  type AgentOptions,
  createRuntime,
  defineAgent,
  defineGuardrail,
  handoff,
  memoryLedger,
  type RuntimeEvent,
  joinText,
  type Tool,
  type Message,
} from '@tallystick/core'
import { auditAll } from '@tallystick/core/machine'
import {
  callTool,
  checkLaws,
  scriptedModel,
  testTool,
  type ScriptedStep,
  hostileTexts,
} from '@tallystick/testkit'
import { searchableTools, type SearchableToolsOptions } from '@tallystick/tools'
import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { tries } from '../../../scripts/testing/effort.ts'
import { writeFound, readFoundNames, findTools, readWords } from '../src/toolkit/searchable-tools.ts'

const things = ['lamp', 'chair', 'table', 'window', 'door', 'garden', 'river', 'mountain']
const named = (name: string, description = `Buys a ${name}.`): Tool => ({
  ...testTool({ name, run: () => `did ${name}` }),
  description,
})
/** Tools for many things: `buy_lamp`, `buy_chair` … */
const shop = things.map((thing) => named(`buy_${thing}`, `Buys a ${thing} for the house.`))

const search = (...queries: string[]): ScriptedStep => ({
  toolCalls: queries.map((query) => ({ name: 'search_tools', input: { query } })),
})
const call = (name: string): ScriptedStep => ({ toolCalls: [{ name, input: {} }] })
const done: ScriptedStep = { text: 'Done.' }

/** Plays the steps, holds the laws, and tells what each turn was offered and what its calls ended in. */
async function playing(
  steps: readonly ScriptedStep[],
  given: SearchableToolsOptions | AgentOptions['toolSource'] = {},
  more: Partial<AgentOptions> = {},
) {
  const toolSource = given && 'tools' in given ? given : searchableTools(shop, given)
  const model = scriptedModel(steps)
  const agent = defineAgent({ name: 'a', instructions: '', model, toolSource, ...more })
  const ledger = memoryLedger()
  const run = createRuntime({ ledger, agents: [agent] }).run(agent, 'Go.')
  const { reason } = await run.result
  expect(reason).toBe('answered')
  return { ...reported(await Array.fromAsync(ledger.read(run.id))), model, ledger, run }
}

function reported(events: readonly RuntimeEvent[]) {
  auditAll(events)
  expect(checkLaws(events)).toEqual([])
  let names: readonly string[] = []
  return {
    /** What each turn was offered, as the ledger says. */
    offered: events.flatMap((event) => {
      if (event.type !== 'model_call_started') return []
      names = event.change?.sourced?.map(({ name }) => name.replace('buy_', '')) ?? names
      return [names.slice(1)]
    }),
    results: events.flatMap((event) =>
      event.type === 'tool_result' ? [`${event.outcome}: ${joinText(event.content)}`] : [],
    ),
  }
}

describe('a model with tools to search for', () => {
  it('is shown what it found from its next turn on, and can call that alone', async () => {
    const { offered, results, model } = await playing([
      call('buy_lamp'),
      search('lamp'),
      call('buy_lamp'),
      call('buy_chair'),
      done,
    ])
    expect(offered).toEqual([[], [], ['lamp'], ['lamp'], ['lamp']])
    expect(model.requests.map(({ tools }) => tools.map(({ name }) => name))[2]).toEqual([
      'search_tools',
      'buy_lamp',
    ])
    expect(results).toEqual([
      expect.stringMatching(/^unknown_tool/),
      'success: {"found":[{"name":"buy_lamp","description":"Buys a lamp for the house."}],"note":"You can call these tools from now on."}',
      'success: did buy_lamp',
      expect.stringMatching(/^unknown_tool: There is no tool named buy_chair/),
    ])
  })

  it('that searches twice in a reply is shown both findings, the best of each first where there is not room for all', async () => {
    const both = await playing([search('lamp', 'chair'), done])
    expect(both.offered[1]).toEqual(['lamp', 'chair'])
    const tools = ['red', 'blue', 'green'].flatMap((colour) => [
      named(`${colour}_one`, `${colour} ${colour}`),
      named(`${colour}_two`, `Something ${colour} and more.`),
    ])
    const source = searchableTools(tools, { maxShown: 3 })
    const { offered } = await playing([search('red', 'blue', 'green'), done], source)
    expect(offered[1]).toEqual(['red_one', 'blue_one', 'green_one'])
  })

  it('is always shown what `always` names, beside so many found', async () => {
    const { offered } = await playing([search('lamp'), search('chair'), search('door'), done], {
      ...{ always: ['buy_river', 'buy_door'], maxShown: 1 },
    })
    const always = ['river', 'door']
    expect(offered).toEqual([always, [...always, 'lamp'], [...always, 'chair'], [...always, 'chair']])
  })

  it('keeps what it used last, and each in its place', async () => {
    const { offered } = await playing(
      [search('lamp', 'chair'), call('buy_lamp'), search('door'), search('garden'), done],
      { maxShown: 2 },
    )
    expect(offered).toEqual([[], ['lamp', 'chair'], ['lamp', 'chair'], ['lamp', 'door'], ['door', 'garden']])
  })

  it('finds at most so many at once, and reads where nothing fits', async () => {
    const { results, offered } = await playing([search('house'), search('astronomy'), done], { maxFound: 2 })
    expect(offered[2]).toEqual(['lamp', 'chair'])
    expect(results[1]).toBe(
      'success: No tool fits these words. Search with other words for what it should do, or continue without it.',
    )
    expect((await playing([search('house'), done])).offered[1]).toHaveLength(5)
    const everything = searchableTools(
      Array.from({ length: 30 }, (_, at) => named(`thing_${at}`)),
      { maxFound: 30 },
    )
    expect((await playing([search('thing'), done], everything)).offered[1]).toHaveLength(20)
  })

  it('reads what there is to search for, and the beginning of long descriptions', async () => {
    const source = searchableTools([named('lamp', `Lamp. ${'x'.repeat(400)}`)], {
      ...{ about: 'the house', toolName: 'find' },
    })
    const { model, results } = await playing(
      [{ toolCalls: [{ name: 'find', input: { query: 'lamp' } }] }, done],
      source,
    )
    expect(model.requests[0]?.tools[0]?.description).toMatch(/There are tools for the house\.$/)
    expect((await playing([done])).model.requests[0]?.tools[0]?.description).not.toContain('There are tools')
    expect(results[0]).toContain(`Lamp. ${'x'.repeat(286)} … (cut)"`)
  })

  it('keeps what it found when a summary takes the search out of its conversation', async () => {
    const compaction = { maxContextTokens: 120, keepMessages: 1, summarize: () => 'It searched.' }
    const { offered, model } = await playing(
      [search('lamp'), call('buy_lamp'), call('buy_lamp'), call('buy_lamp'), done],
      {},
      { compaction },
    )
    expect(JSON.stringify(model.requests.at(-1)?.messages)).not.toContain('search_tools')
    expect(offered.at(-1)).toEqual(['lamp'])
  })

  it.each([
    ['changed', { replace: [{ type: 'text', text: 'nothing' }] }],
    ['cut', { replace: [{ type: 'text', text: '{"found":[{"name":"buy_lamp"' }] }],
    ['forged', { replace: [{ type: 'text', text: '{"found":[{"name":"no_tool"},{},null]}' }] }],
    ['emptied', { replace: [{ type: 'text', text: 'null' }] }],
    ['of another shape', { replace: [{ type: 'text', text: '{"note":"none"}' }] }],
  ] as const)('is shown nothing that a %s result does not name', async (_how, verdict) => {
    const changing = defineGuardrail({ name: 'g', on: 'tool_output', check: () => verdict as never })
    const { offered } = await playing([search('lamp'), done], {}, { guardrails: [changing] })
    expect(offered[1]).toEqual([])
  })

  it('searches anew where one tool of a source is another one', async () => {
    const [lamp, door] = [named('buy_lamp'), named('buy_door')]
    const source = { tools: [lamp, door] }
    const swapping = testTool({
      name: 'swap',
      run: () => ((source.tools = [lamp, named('buy_boat')]), 'swapped'),
    })
    const { offered } = await playing(
      [search('door'), call('swap'), search('boat'), done],
      searchableTools(source),
      { tools: [swapping] },
    )
    expect(offered).toEqual([[], ['door'], [], ['boat']])
  })

  it('follows a source that changes, and searches what it has then', async () => {
    const source = { tools: [...shop, {} as Tool] }
    const swap = testTool({
      name: 'swap',
      run: () => ((source.tools = [named('buy_lamp'), named('sell_lamp', 'Sells a lamp.')]), 'swapped'),
    })
    const { offered } = await playing(
      [search('lamp'), search('chair'), call('swap'), search('lamp'), done],
      searchableTools(source),
      { tools: [swap] },
    )
    expect(offered).toEqual([[], ['lamp'], ['lamp', 'chair'], ['lamp'], ['lamp', 'sell_lamp']])
  })

  it.each([
    ['all of the conversation', undefined, ['lamp']],
    ['only what the user said', 'user', ['lamp']],
  ])('hands over with %s, and the next agent keeps what was found', async (_how, role, kept) => {
    const source = searchableTools(shop)
    const model = scriptedModel([call('buy_lamp'), done], 'second')
    const second = defineAgent({ name: 'second', instructions: '', model, toolSource: source })
    const filter =
      role && ((messages: readonly { readonly role: string }[]) => messages.filter((m) => m.role === role))
    const { offered, results } = await playing([search('lamp'), call('transfer_to_second')], source, {
      handoffs: [handoff(second, { filter: filter as never })],
    })
    expect(offered).toEqual([[], ['lamp'], kept, kept])
    expect(results.at(-1)).toBe('success: did buy_lamp')
  })

  it('is shown it in a process that takes the run over, and in the next run of the session', async () => {
    const ledger = memoryLedger()
    /** A process of its own: its tools, index and agent are made anew. */
    const process = (steps: readonly ScriptedStep[]) => {
      const pay = { ...named('pay', 'Pays.'), check: () => ({ kind: 'ask' }) as const }
      const model = scriptedModel(steps)
      const toolSource = searchableTools([...shop, pay])
      const agent = defineAgent({ name: 'a', instructions: '', model, toolSource })
      return { agent, model, runtime: createRuntime({ ledger, agents: [agent] }) }
    }
    const first = process([search('lamp', 'pays'), call('pay')])
    const waiting = await first.runtime.run(first.agent, 'Go.', { sessionId: 's' }).result
    expect(waiting.status).toBe('suspended')
    const second = process([call('buy_lamp'), done])
    const resumed = second.runtime.resume(waiting.runId)
    await resumed.approve(waiting.pendingApprovals[0]!, { by: 'ada' })
    await resumed.result
    const { offered, results } = reported(await Array.fromAsync(ledger.read(waiting.runId)))
    expect(offered).toEqual([[], ['lamp', 'pay'], ['lamp', 'pay'], ['lamp', 'pay']])
    expect(results.slice(2)).toEqual(['success: did pay', 'success: did buy_lamp'])
    const third = process([call('buy_lamp'), done])
    const next = third.runtime.run(third.agent, 'Again.', { sessionId: 's' })
    await next.result
    expect(reported(await Array.fromAsync(ledger.read(next.id))).offered[0]?.toSorted()).toEqual([
      'lamp',
      'pay',
    ])
  })
})

describe('searchableTools', () => {
  it.each<[unknown, unknown, string]>([
    ['shop', {}, 'searchableTools: tools is a text; expected a source of tools'],
    [searchableTools(shop), {}, 'expected a source of tools that does not choose among them itself'],
    [[{ name: 'a', description: 'b' }], {}, 'tools[0] is an object; expected a tool'],
    [shop, { maxShown: 0 }, 'maxShown'],
    [shop, { maxShown: 1.5 }, 'maxShown'],
    [shop, { maxFound: 0 }, 'maxFound'],
    [shop, { maxFound: 1.5 }, 'maxFound'],
    [shop, { always: 'buy_lamp' }, 'always'],
    [shop, { always: ['buy_boat'] }, 'always names buy_boat, and no tool has that name'],
    [shop, { about: '' }, 'about'],
    [shop, { toolName: '' }, 'toolName'],
    [shop, { toolName: 'buy_lamp' }, 'one of the tools has the name buy_lamp of the tool that searches'],
    [shop, { most: 3 }, 'most'],
  ])('refuses %#', (tools, options, why) => {
    expect(() => searchableTools(tools as never, options as never)).toThrow(why)
  })

  it('lists of a source what is a tool, and nothing else', () => {
    const [lamp] = shop
    const odd = [{ ...lamp, name: 1 }, { ...lamp, description: 1 }, { ...lamp, check: 1 }, null]
    const source = searchableTools({ tools: [lamp!, ...odd] as unknown as readonly Tool[] })
    expect(source.tools.map(({ name }) => name)).toEqual(['search_tools', 'buy_lamp'])
    for (const each of odd) expect(() => searchableTools([each as never])).toThrow('tools[0]')
  })

  it('offers of what a turn offered before what there still is, the last of it where there is not room for all', () => {
    const offered = (options: SearchableToolsOptions, before: readonly string[]) =>
      searchableTools(shop, options).offered!({ messages: () => [], before })
    expect(offered({}, ['buy_lamp', 'buy_boat', 'buy_chair'])).toEqual([
      ...['search_tools', 'buy_lamp', 'buy_chair'],
    ])
    expect(offered({ maxShown: 1 }, ['buy_lamp', 'buy_chair'])).toEqual(['search_tools', 'buy_chair'])
    expect(offered({ always: ['buy_lamp'] }, ['search_tools', 'buy_lamp', 'buy_chair'])).toEqual([
      ...['search_tools', 'buy_lamp', 'buy_chair'],
    ])
  })

  it('reads the texts of its tools once, and again where the tools are others', async () => {
    let reads = 0
    const counted = (name: string, description: string): Tool =>
      Object.defineProperty(named(name), 'description', { get: () => (reads++, description) })
    const [best, other] = [counted('lamp', 'lamp'), named('shop', 'lamp shop')]
    const source = { tools: [other, best] }
    const [search] = searchableTools(source, { maxFound: 1 }).tools
    const found = async (): Promise<readonly string[]> => {
      const { text } = await callTool(search!, { query: 'lamp' })
      return [...text.matchAll(/"name":"(\w+)"/g)].map(([, name = '']) => name)
    }
    expect(await found()).toEqual(['lamp'])
    const before = reads
    expect(await found()).toEqual(['lamp'])
    // Its description is in the answer; the index does not read it again.
    const perAnswer = reads - before
    await found()
    expect(reads - before).toBe(2 * perAnswer)
    source.tools = [other]
    expect(await found()).toEqual(['shop'])
    source.tools = [named('desk', 'lamp')]
    expect(await found()).toEqual(['desk'])
    source.tools = [source.tools[0]!, best]
    expect(await found()).toEqual(['lamp'])
  })

  it('is not changed by a later change of the list that it was given', async () => {
    const list = [...shop]
    const source = searchableTools(list)
    list.length = 0
    expect(source.tools).toHaveLength(9)
  })
})

/** A message with the results of tools: each a name, what it says, and how it ended. */
const results = (...given: readonly (readonly [name: string, text: string, outcome?: string])[]): Message =>
  ({
    role: 'tool',
    results: given.map(([name, text, outcome = 'success']) => ({
      ...{ callId: 'c', name, outcome, content: [{ type: 'text', text }] },
    })),
  }) as unknown as Message
const finding = (...names: readonly string[]) =>
  JSON.stringify(writeFound(names.map((name) => ({ name, description: '' }))))

describe('the names that a conversation used or found', () => {
  it.each<[string, readonly Message[], readonly string[]]>([
    ['none where no tool was called', [{ role: 'user', parts: [] } as unknown as Message], []],
    ['the tools that ran', [results(['a', 'x'], ['b', 'x', 'failed'])], ['a', 'b']],
    ['no tool that there is not', [results(['a', 'x', 'unknown_tool'])], []],
    ['the search and what it found', [results(['find', finding('a', 'b')])], ['find', 'a', 'b']],
    ['the latest first', [results(['a', 'x']), results(['b', 'x'])], ['b', 'a']],
    [
      'of several searches first all that came first',
      [results(['find', finding('a')], ['find', finding('b', 'c', 'd')], ['find', finding('e', 'f')])],
      ['find', 'find', 'find', 'a', 'b', 'e', 'c', 'f', 'd'],
    ],
    ['nothing that another tool says it found', [results(['a', finding('b')])], ['a']],
    [
      'nothing of a result that is not a finding',
      [results(['find', '{}'], ['find', 'none'])],
      ['find', 'find'],
    ],
  ])('are %s', (_what, messages, names) => {
    expect([...readFoundNames(messages, 'find')]).toEqual(names)
  })
})

describe('the answer of a search', () => {
  it('holds the first 300 characters of a description', () => {
    const description = 'x'.repeat(300)
    expect(writeFound([{ name: 'a', description }])).toMatchObject({ found: [{ name: 'a', description }] })
    expect(writeFound([{ name: 'a', description: `${description}y` }])).toMatchObject({
      found: [{ description: expect.stringMatching(/^x+ … \(cut\)$/) }],
    })
  })
})

const tool = (name: string, description = '', inputs: readonly string[] = []) => ({
  name,
  description,
  inputSchema: { type: 'object', properties: Object.fromEntries(inputs.map((input) => [input, {}])) },
})

const indexTools = (tools: Parameters<typeof findTools>[0]) => ({
  find: (query: string) => findTools(tools, query),
})

const office = [
  tool('mcp__github__create_issue', 'Opens a new issue in a repository.', ['repo', 'title', 'body']),
  tool('mcp__github__list_issues', 'Lists the issues of a repository.', ['repo', 'state']),
  tool('mcp__github__merge_pull_request', 'Merges a pull request.', ['repo', 'number']),
  tool('mcp__slack__post_message', 'Posts a message to a channel.', ['channel', 'text']),
  tool('mcp__slack__list_channels', 'Lists the channels of a workspace.'),
  tool('mcp__mail__send', 'Sends an email to one or more people.', ['to', 'subject', 'body']),
  tool('mcp__mail__search', 'Searches the mailbox, for messages about a subject.', ['query']),
  tool('getWeather', 'Tells the weather of a city for the next days.', ['city']),
  tool('sql_query', 'Runs one statement that reads the database.', ['sql']),
  tool('cafe_orders', 'Bestellungen im Café: alle offenen Posten.'),
]
const index = indexTools(office)

/** BM25 as a textbook has it, over the words of each tool; a beginning counts half where no tool has the word. */
function textbookScores(
  tools: readonly Readonly<Record<'name' | 'description' | 'inputs', readonly string[]>>[],
  query: readonly string[],
): ReadonlyMap<string, number> {
  const [k, b] = [1.2, 0.75]
  const times = (words: readonly string[], word: string) => words.filter((each) => each === word).length
  const frequency = ({ name, description, inputs }: (typeof tools)[number], word: string) =>
    3 * times(name, word) + times(description, word) + times(inputs, word) / 2
  const length = ({ name, description, inputs }: (typeof tools)[number]) =>
    3 * name.length + description.length + inputs.length / 2
  const mean = tools.map(length).reduce((sum, each) => sum + each) / tools.length
  const known = new Set(
    tools.flatMap(({ name, description, inputs }) => [...name, ...description, ...inputs]),
  )
  const share = (word: string) =>
    query.includes(word)
      ? 1
      : query.some((asked) => !known.has(asked) && (asked.startsWith(word) || word.startsWith(asked)))
        ? 0.5
        : 0
  const score = (each: (typeof tools)[number]) =>
    [...known]
      .map((word) => {
        const having = tools.filter((other) => frequency(other, word) > 0).length
        const rarity = Math.log(1 + (tools.length - having + 0.5) / (having + 0.5))
        const f = frequency(each, word)
        return (share(word) * rarity * f * (k + 1)) / (f + k * (1 - b + (b * length(each)) / mean))
      })
      .reduce((sum, part) => sum + part)
  return new Map(tools.map((each) => [each.name.join('_'), score(each)]))
}

describe('words of which no tool has all', () => {
  it('count half as much where they only begin a word, and a word that is there counts whole', () => {
    const both = indexTools([tool('lamp'), tool('chair')])
    expect(both.find('lamp lamps chair')).toEqual(['lamp', 'chair'])
    const halves = indexTools([tool('lamp', 'house'), tool('other', 'garden window')])
    expect(halves.find('house gard windo')).toEqual(['lamp', 'other'])
    expect(
      indexTools([tool('one', 'lamp'), tool('other', 'garden window river')]).find('lamp gard windo rive'),
    ).toEqual(['other', 'one'])
  })
})

describe('the words of a text', () => {
  it.each<[string, readonly string[]]>([
    ['getWeatherForCity', ['get', 'weather', 'for', 'citi']],
    ['mcp__git-hub__list_2issues', ['mcp', 'git', 'hub', 'list', '2', 'issu']],
    ['creating creates created create', ['creat', 'creat', 'creat', 'creat']],
    ['replies reply replying', ['repli', 'repli', 'repli']],
    ['searches search', ['search', 'search']],
    ['Café ÉTÉ', ['caf', 'ete']],
    ['is red bed bus', ['is', 'red', 'bed', 'bus']],
    ['v2Api', ['v', '2', 'api']],
    ['  ,;-- ', []],
    [`${'x '.repeat(2_000)}last`, Array.from({ length: 2_000 }, () => 'x')],
  ])('%j', (text, words) => {
    expect(readWords(text)).toEqual(words)
  })
})

describe('a search over tools', () => {
  it.each<[string, string]>([
    ['open an issue', 'mcp__github__create_issue'],
    ['which issues are there', 'mcp__github__list_issues'],
    ['merge PR pull request', 'mcp__github__merge_pull_request'],
    ['send email', 'mcp__mail__send'],
    ['slack message', 'mcp__slack__post_message'],
    ['weather in Paris', 'getWeather'],
    ['query the database', 'sql_query'],
    ['cafe', 'cafe_orders'],
    ['city', 'getWeather'],
  ])('%j finds %s first', (query, name) => {
    expect(index.find(query)[0]).toBe(name)
  })

  it('puts the tool with exactly that name first, whatever else fits', () => {
    const many = indexTools([
      tool('send_mail', 'send send send'),
      tool('Send', 'Other.'),
      tool('resend', 'send'),
    ])
    expect(many.find(' send ')).toEqual(['Send', 'send_mail', 'resend'])
    expect(many.find('SEND')).toEqual(['Send', 'send_mail', 'resend'])
  })

  it('knows a word by its beginning where no tool has it, and counts that less', () => {
    expect(index.find('workspa')[0]).toBe('mcp__slack__list_channels')
    const two = indexTools([tool('a', 'channel'), tool('b', 'channeling weather'), tool('c', 'weather')])
    expect(two.find('chann')).toEqual(['a', 'b'])
    expect(two.find('channelling')).toEqual(['a', 'b'])
    expect(indexTools([tool('a', 'weathervane'), tool('b', 'city')]).find('weather city')).toEqual(['b', 'a'])
    expect(two.find('we')).toEqual([])
    expect(two.find('wea')).toEqual(['c', 'b'])
    expect(indexTools([tool('a', 'at')]).find('atlas')).toEqual([])
  })

  it('counts a name more than a description, that more than an input, and a rare word more than a common one', () => {
    const fields = indexTools([tool('x', 'y', ['log']), tool('y', 'log'), tool('log', 'z'), tool('z', 'x')])
    expect(fields.find('a log')).toEqual(['log', 'y', 'x'])
    const rare = indexTools([
      tool('a', 'log file'),
      tool('b', 'log file'),
      tool('c', 'log'),
      tool('d', 'disk'),
    ])
    expect(rare.find('log disk')[0]).toBe('d')
  })

  it('counts a word less in a long text, and more words of a query more', () => {
    const long = indexTools([tool('a', `log ${'and more '.repeat(40)}`), tool('b', 'log')])
    expect(long.find('log')).toEqual(['b', 'a'])
    const words = indexTools([tool('a', 'log'), tool('b', 'disk log'), tool('c', 'disk')])
    expect(words.find('disk log')[0]).toBe('b')
  })

  it('keeps the order of the tools among equals, and finds nothing without a word that fits', () => {
    expect(indexTools([tool('b', 'log'), tool('a', 'log')]).find('log')).toEqual(['b', 'a'])
    expect(index.find('astronomy')).toEqual([])
    expect(index.find('')).toEqual([])
    expect(indexTools([]).find('log')).toEqual([])
  })

  it('ranks by BM25, with a name worth three times a description and an input half of it', () => {
    const word = fc.constantFrom('lamp', 'lampart', 'lampion', 'door', 'wall', 'wallpost')
    const texts = fc.record({
      name: fc.array(word, { maxLength: 2 }),
      description: fc.array(word, { maxLength: 12 }),
      inputs: fc.uniqueArray(word, { maxLength: 3 }),
    })
    fc.assert(
      fc.property(
        fc.array(texts, { minLength: 2, maxLength: 6 }),
        fc.array(word, { minLength: 1, maxLength: 3 }),
        (given, query) => {
          const named = given.map((each, at) => ({
            ...each,
            name: [`n${'abcdef'.charAt(at)}`, ...each.name],
          }))
          const ranked = indexTools(
            named.map(({ name, description, inputs }) => tool(name.join('_'), description.join(' '), inputs)),
          ).find(query.join(' '))
          const scores = textbookScores(named, query)
          const found = ranked.map((name) => scores.get(name) ?? 0)
          expect(ranked).toHaveLength([...scores.values()].filter((score) => score > 0).length)
          for (const [at, score] of found.slice(1).entries())
            expect(score).toBeLessThanOrEqual((found[at] ?? 0) + 1e-9)
        },
      ),
      { numRuns: tries(1_500) },
    )
  })

  it('finds each tool by its name and by its description, whatever they say', () => {
    const someText = fc.constantFrom(...hostileTexts.map(({ text }) => text.slice(0, 300)))
    fc.assert(
      fc.property(fc.array(fc.tuple(someText, someText), { minLength: 1, maxLength: 8 }), (texts) => {
        const tools = texts.map(([name, description], at) => tool(`${at}${name}`, description))
        const made = indexTools(tools)
        for (const { name, description } of tools) {
          expect(made.find(name)).toContain(name)
          expect(made.find(description).includes(name)).toBe(readWords(description).length > 0)
        }
      }),
      { numRuns: tries(60) },
    )
  })
})
