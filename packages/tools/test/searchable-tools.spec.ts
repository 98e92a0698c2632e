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
} from '@tallystick/core'
import { auditAll } from '@tallystick/core/machine'
import { callTool, checkLaws, scriptedModel, testTool, type ScriptedStep } from '@tallystick/testkit'
import { searchableTools, type SearchableToolsOptions } from '@tallystick/tools'
import { describe, expect, it } from 'vitest'

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
