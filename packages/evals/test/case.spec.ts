import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { agentTool, createRuntime, defineAgent, memoryLedger } from '@tallystick/core'
import { collectCases, evaluate, exact, readCases, toolCalls } from '@tallystick/evals'
import { scriptedModel, testTool } from '@tallystick/testkit'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'

const calls = (...inputs: readonly object[]) => ({
  toolCalls: inputs.map((input) => ({ name: 'pay', input: input as never })),
})
const pay = () =>
  testTool({
    name: 'pay',
    effect: 'write',
    check: () => ({ kind: 'ask' }),
    run: ({ input }) => JSON.stringify(input),
  })

describe('a case of a recorded run', () => {
  it('has the messages of its session before it', async () => {
    const ledger = memoryLedger()
    const agent = defineAgent({
      name: 'a',
      instructions: 'Talk.',
      model: scriptedModel([{ text: 'One.' }, { text: 'Two.' }]),
    })
    const runtime = createRuntime({ ledger, agents: [agent] })
    for (const input of ['First?', 'Second?']) await runtime.run(agent, input, { sessionId: 'chat' }).result
    const [second, first] = await Array.fromAsync(collectCases(ledger))
    expect(first).toMatchObject({ input: 'First?', expected: 'One.' })
    expect(first).not.toHaveProperty('history')
    expect(second).toMatchObject({
      input: 'Second?',
      expected: 'Two.',
      history: [{ role: 'user' }, { role: 'assistant' }],
    })
    const model = scriptedModel([{ text: 'Two.' }])
    const report = await evaluate({
      ...{
        cases: [second!],
        agents: { today: { ...agent, model } },
        scorers: { exact: exact() },
        ledger: memoryLedger(),
      },
    })
    expect(report.scores['exact']!.agents['today']!.mean).toBe(1)
    expect(JSON.stringify(model.requests[0])).toContain('First?')
  })

  it('begins with what a person said last, and has all before it as history', async () => {
    const ledger = memoryLedger()
    const look = () => testTool({ name: 'look', run: ({ input }) => JSON.stringify(input) })
    const looks = (at: string) => ({ toolCalls: [{ name: 'look', input: { at } }] })
    const make = (...steps: Parameters<typeof scriptedModel>[0] & readonly unknown[]) => {
      const model = scriptedModel(steps)
      return {
        model,
        agent: defineAgent({ name: 'a', instructions: 'Look.', model, tools: [look()] }),
      }
    }
    const { agent } = make(looks('sea'), looks('hill'), { text: 'Blue.' }, looks('sky'), { text: 'Grey.' })
    const run = createRuntime({ ledger, agents: [agent] }).run(agent, 'How is the sea?')
    for await (const event of run) {
      if (event.type === 'tool_started' && event.turn === 1) {
        await run.steer('And the hill?')
        await run.queue('And the sky?')
      }
    }
    expect((await run.result).text).toBe('Grey.')
    const [made] = await Array.fromAsync(collectCases(ledger))
    expect(made).toMatchObject({
      input: 'And the sky?',
      expected: 'Grey.',
      calls: [{ input: { at: 'sky' } }],
    })
    const said = made!.history!.flatMap((message) =>
      message.role === 'user' ? message.parts.map((part) => (part.type === 'text' ? part.text : '')) : [],
    )
    expect(said).toEqual(['How is the sea?', 'And the hill?'])
    const other = make(looks('sky'), { text: 'Grey.' })
    const report = await evaluate({
      ...{ cases: [made!], agents: { today: other.agent }, scorers: { exact: exact(), calls: toolCalls() } },
      ledger: memoryLedger(),
    })
    expect(
      [report.scores['exact']!, report.scores['calls']!].map(({ agents }) => agents['today']!.mean),
    ).toEqual([1, 1])
    expect(report.divergence!.agents['today']!.mean).toBe(0)
    expect(JSON.stringify(other.model.requests[0])).toContain('And the hill?')
  })

  it('has what the tool got where a person changed it, in the order of the requests', async () => {
    const ledger = memoryLedger()
    const steps = [calls({ usd: 1 }, { usd: 2 }, { usd: 3 }), { text: 'Paid.' }]
    const agent = defineAgent({
      name: 'a',
      instructions: 'Pay.',
      model: scriptedModel(steps),
      tools: [pay()],
    })
    const run = createRuntime({ ledger, agents: [agent] }).run(agent, 'Pay.')
    const [one, two, three] = (await run.result).pendingApprovals
    await run.approve(three!, { by: 'ada' })
    await run.deny(two!, { by: 'ada', reason: 'Once is enough.' })
    await run.approve(one!, { by: 'ada', input: { usd: 9 } })
    await run.result
    const [made] = await Array.fromAsync(collectCases(ledger))
    expect(made!.calls).toMatchObject([
      {
        input: { usd: 1 },
        ran: { usd: 9 },
        outcome: 'success',
        content: expect.stringContaining('9') as string,
      },
      { input: { usd: 2 }, outcome: 'denied' },
      { input: { usd: 3 }, outcome: 'success' },
    ])
    const again = defineAgent({
      name: 'a',
      instructions: 'Pay.',
      model: scriptedModel(steps),
      tools: [pay()],
    })
    const report = await evaluate({
      ...{ cases: [made!], agents: { again }, scorers: { calls: toolCalls() }, ledger: memoryLedger() },
    })
    expect(report.scores['calls']!.agents['again']!.mean).toBe(1)
    expect(report.divergence!.agents['again']!.mean).toBe(0)
  })

  it('has the calls of child runs, and is of the root run alone', async () => {
    const ledger = memoryLedger()
    const free = testTool({ name: 'pay', run: () => 'paid' })
    const child = defineAgent({
      name: 'child',
      description: 'Pays.',
      instructions: 'Pay.',
      model: scriptedModel([calls({ usd: 1 }), { text: 'Paid.' }]),
      tools: [free],
    })
    const asks = scriptedModel([
      { toolCalls: [{ name: 'child', input: { task: 'Pay.' } }] },
      { text: 'Done.' },
    ])
    const boss = defineAgent({ name: 'boss', instructions: 'Ask.', model: asks, tools: [agentTool(child)] })
    await createRuntime({ ledger, agents: [boss] }).run(boss, 'Pay.').result
    const made = await Array.fromAsync(collectCases(ledger))
    expect(made).toHaveLength(1)
    expect(made[0]!.calls).toMatchObject([{ tool: 'child' }, { tool: 'pay', child: true, content: 'paid' }])
    expect(made[0]!.calls![0]).not.toHaveProperty('child')
  })

  it('is made of the runs that a schedule has started, and not of the schedule', async () => {
    const ledger = memoryLedger()
    const agent = defineAgent({ name: 'a', instructions: 'Talk.', model: scriptedModel([{ text: 'One.' }]) })
    const runtime = createRuntime({ ledger, agents: [agent] })
    const { scheduleId } = await runtime.schedule(agent, { at: 0, input: 'First?' })
    await runtime.resume(scheduleId).result
    const skipped: string[] = []
    const made = collectCases(ledger, { onSkipped: (run, why) => void skipped.push(`${run} ${why}`) })
    expect(await Array.fromAsync(made)).toMatchObject([{ input: 'First?', expected: 'One.' }])
    expect(skipped).toEqual([`${scheduleId} it is a schedule, which calls no model`])
  })

  it('is not made of a run that goes on', async () => {
    const ledger = memoryLedger()
    const agent = defineAgent({
      name: 'a',
      instructions: 'Pay.',
      model: scriptedModel([calls({ usd: 1 })]),
      tools: [pay()],
    })
    const { runId } = await createRuntime({ ledger, agents: [agent] }).run(agent, 'Pay.').result
    const skipped: string[] = []
    const made = collectCases(ledger, { onSkipped: (run, why) => void skipped.push(`${run} ${why}`) })
    expect(await Array.fromAsync(made)).toEqual([])
    expect(skipped).toEqual([`${runId} it has not ended`])
  })

  it('is made of runs that are named, in their order, and of no child run alone', async () => {
    const ledger = memoryLedger()
    const look = defineAgent({
      ...{ name: 'look', description: 'Looks.', instructions: 'Look.' },
      model: scriptedModel([{ text: 'Rain.' }, { text: 'Sun.' }]),
    })
    const ask = { toolCalls: [{ name: 'look', input: { task: 'Look.' } }] }
    const model = scriptedModel([ask, { text: 'It rains.' }, ask, { text: 'It shines.' }])
    const agent = defineAgent({ name: 'a', instructions: 'Say.', model, tools: [agentTool(look)] })
    const runtime = createRuntime({ ledger, agents: [agent] })
    for (const input of ['Today?', 'Tomorrow?']) await runtime.run(agent, input).result
    const runs = (await Array.fromAsync(ledger.runs())).map(({ runId }) => runId).reverse()
    const skipped: string[] = []
    const made = collectCases(ledger, { runs, onSkipped: (_run, why) => void skipped.push(why) })
    const cases = await Array.fromAsync(made)
    expect(cases.map(({ input }) => input)).toEqual(['Today?', 'Tomorrow?'])
    expect(skipped).toEqual(
      Array(2).fill('it is a child run, whose calls are part of the case of its root run'),
    )
    expect(await Array.fromAsync(collectCases(ledger))).toEqual(cases.toReversed())
    await expect(collectCases(ledger, { runs: 'latest' as never }).next()).rejects.toThrow('ids of runs')
  })
})

describe('a file of cases', () => {
  let folder: string
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'tallystick-cases-'))
  })
  afterAll(() => rm(folder, { recursive: true }))
  const read = async (name: string, text: string) => {
    await writeFile(join(folder, name), text)
    return await Array.fromAsync(readCases(join(folder, name)))
  }

  it('may say what only its own scorers need', async () => {
    const [own] = await read('own.jsonl', '{"id":"a","input":"x","metadata":{"tone":"polite"}}')
    expect(own!.metadata).toEqual({ tone: 'polite' })
  })

  it('is read line by line, empty ones and line ends of Windows aside', async () => {
    const text =
      '{"id":"a","input":"Hi.\u2028"}\r\n\n{"id":"b","input":[{"type":"text","text":"Hi."}],"expected":null}'
    expect(await read('cases.jsonl', text)).toEqual([
      { id: 'a', input: 'Hi.\u2028' },
      { id: 'b', input: [{ type: 'text', text: 'Hi.' }], expected: null },
    ])
  })

  it.each([
    ['{"id":"a"', 'is not JSON'],
    ['7', 'the case'],
    ['{"id":"a"}', 'input'],
    ['{"id":"","input":"x"}', 'id'],
    ['{"id":"a","input":"x","ideal":"y"}', 'Did you mean the case.expected'],
    ['{"id":"a","input":"x","calls":[{"tool":"t","input":{},"outcome":"fine","content":""}]}', 'outcome'],
  ])('is refused with the place of what is none: %s', async (line, said) => {
    const wrong = read('wrong.jsonl', `{"id":"x","input":"x"}\n${line}\n`)
    await expect(wrong).rejects.toThrow(/^Line 2 of /)
    await expect(wrong).rejects.toThrow(said)
  })

  it('that is missing is said to be', async () => {
    await expect(Array.fromAsync(readCases(join(folder, 'none.jsonl')))).rejects.toMatchObject({
      code: 'configuration',
    })
  })
})
