import {
  type Agent,
  agentTool,
  createRuntime,
  defineAgent,
  handoff,
  type Ledger,
  memoryLedger,
  type Model,
} from '@tallystick/core'
import {
  collectCases,
  contains,
  type EvalCase,
  evaluate,
  exact,
  formatReport,
  toolCalls,
} from '@tallystick/evals'
import { verifyRun } from '@tallystick/ledger'
import {
  hostileTexts,
  manualClock,
  scriptedModel,
  type ScriptedStep,
  testTool,
  type TestTool,
} from '@tallystick/testkit'
import { describe, expect, it } from 'vitest'

const usage = { inputTokens: 100, outputTokens: 10 }
const prices = { 'scripted-1': { inputUsd: 10, outputUsd: 100, source: 'test' } }

/** Says the price of what it is asked for: looks it up first, however often it is asked. */
const honest: ScriptedStep = ({ messages }) =>
  messages.at(-1)?.role === 'tool'
    ? { text: 'It is 5 USD.', usage }
    : { toolCalls: [{ name: 'look_up', input: { item: 'tea' } }], usage }
const guessing: ScriptedStep = () => ({ text: 'It is 7 USD.', usage })
const often = (step: ScriptedStep): Model => scriptedModel(Array.from({ length: 400 }, () => step))

function shopTool(): TestTool {
  return testTool({ name: 'look_up', effect: 'write', run: () => '5 USD', check: () => ({ kind: 'ask' }) })
}

const clerk = (model: Model, tool: TestTool = shopTool()): Agent =>
  defineAgent({ name: 'clerk', instructions: 'Sell.', model, tools: [tool] })

/** A ledger with one run of the clerk, for which a person approved the call. */
async function recordShop(): Promise<{ readonly ledger: Ledger; readonly tool: TestTool }> {
  const ledger = memoryLedger()
  const tool = shopTool()
  const agent = clerk(often(honest), tool)
  const run = createRuntime({ ledger, agents: [agent], prices }).run(agent, 'How much is tea?', {
    tags: ['tea'],
  })
  const [call] = (await run.result).pendingApprovals
  await run.approve(call!, { by: 'ada' })
  await run.result
  await run.feedback({ by: 'ada', score: 1, note: 'Right.' })
  return { ledger, tool }
}

const teaCase = (id: string): EvalCase => ({
  id,
  input: 'How much is tea?',
  calls: [{ tool: 'look_up', input: { item: 'tea' }, outcome: 'success', content: '5 USD' }],
  expected: 'It is 5 USD.',
})
const teaCases = (count: number): readonly EvalCase[] =>
  Array.from({ length: count }, (_, index) => teaCase(`tea ${index}`))
const scorers = { exact: exact(), calls: toolCalls() }

describe('an evaluation', () => {
  it('runs the cases of recorded runs with the recorded results, and no tool', async () => {
    const { ledger, tool } = await recordShop()
    const cases = await Array.fromAsync(collectCases(ledger, { where: { tag: 'tea' } }))
    expect(cases).toMatchObject([
      {
        ...{ input: 'How much is tea?', expected: 'It is 5 USD.', agent: 'clerk', reason: 'answered' },
        calls: [{ tool: 'look_up', input: { item: 'tea' }, outcome: 'success', content: '5 USD' }],
        feedback: [{ by: 'ada', score: 1, note: 'Right.' }],
        tags: ['tea'],
      },
    ])
    const own = memoryLedger()
    const report = await evaluate({
      ...{ cases, scorers, ledger: own, name: 'tea', repeats: 3, runtime: { prices } },
      agents: { today: clerk(often(honest), tool), other: clerk(often(guessing), tool) },
    })
    // The recorded run alone has called the tool.
    expect(tool.runs).toHaveLength(1)
    expect(report).toMatchObject({
      ...{ name: 'tea', isComplete: true, cases: 1, repeats: 3, failures: { count: 0 } },
      scores: {
        exact: {
          agents: { today: { mean: 1 }, other: { mean: 0 } },
          differences: { other: { mean: -1, cases: 1 } },
        },
        calls: { agents: { today: { mean: 1 }, other: { mean: 0 } } },
      },
      costUsd: { agents: { today: { mean: 0.004 }, other: { mean: 0.002 } } },
      tokens: { agents: { today: { mean: 220 }, other: { mean: 110 } } },
      divergence: { agents: { today: { mean: 0 }, other: { mean: 1 } } },
    })
    // Each score is on record with its run.
    const runs = await Array.fromAsync(own.runs())
    expect(runs).toHaveLength(6)
    for (const { runId } of runs) {
      expect(await verifyRun(own, runId)).toMatchObject({ ok: true })
      const said = await Array.fromAsync(own.find({ runId, types: ['feedback_given'] }))
      expect(said.map((event) => 'by' in event && event.by)).toEqual(['exact', 'calls'])
    }
  })

  it('prints the same table in whatever order runs end', async () => {
    const print = async (concurrency: number): Promise<string> => {
      const report = await evaluate({
        ...{
          cases: teaCases(12),
          scorers,
          ledger: memoryLedger(),
          concurrency,
          repeats: 2,
          name: 'same',
          runtime: { host: { clock: manualClock() } },
        },
        agents: { today: clerk(often(honest)), other: clerk(often(guessing)) },
      })
      return formatReport(report)
    }
    const one = await print(1)
    expect(await print(7)).toBe(one)
    expect(one).toContain('exact        1.00 [0.76, 1.00]  0.00 [0.00, 0.24]  -1.00 [-1.00, -1.00]')
    expect(one).toContain('12 cases, 2 runs each, 48 runs.')
  })

  it('counts a run that fails with its reason, and loses none', async () => {
    const broken = defineAgent({
      name: 'clerk',
      instructions: () => {
        throw new Error('no such shop')
      },
      model: often(honest),
    })
    const failing = clerk(
      scriptedModel(Array.from({ length: 9 }, () => ({ fail: 'authentication' as const }))),
    )
    const waiting = clerk(often(honest))
    const report = await evaluate({
      ...{ cases: teaCases(2), scorers, ledger: memoryLedger(), tools: { look_up: 'armed' } },
      agents: { broken, failing, waiting },
    })
    expect(report.cases).toBe(2)
    expect(report.failures.count).toBe(6)
    const reasons = report.failures.shown.map(({ agent, what }) => `${agent}: ${what}`)
    expect(reasons[0]).toMatch(/^broken: .*no such shop/)
    expect(reasons[1]).toMatch(/^failing: ended as model_failed \(authentication: /)
    expect(reasons[2]).toBe('waiting: waits for an approval of look_up')
    for (const { mean } of Object.values(report.scores['exact']!.agents)) expect(mean).toBe(0)
    expect(formatReport(report)).toContain('6 runs without an answer')
  })

  it('arms a tool, stands in for another, and says what is not on record', async () => {
    const { tool } = await recordShop()
    const each: EvalCase = { id: 'tea', input: 'How much is tea?' }
    const answers: ScriptedStep = ({ messages }) => {
      const last = messages.at(-1)
      return last?.role === 'tool'
        ? {
            text: last.results
              .map(({ content }) => content.map((part) => ('text' in part ? part.text : '')).join(''))
              .join(''),
          }
        : { toolCalls: [{ name: 'look_up', input: { item: 'tea' } }] }
    }
    const said = async (tools?: Parameters<typeof evaluate>[0]['tools']): Promise<string> => {
      let text = ''
      await evaluate({
        ...{
          cases: [each],
          ledger: memoryLedger(),
          agents: { today: clerk(often(answers), { ...tool, check: () => ({ kind: 'run' }) }) },
        },
        scorers: { text: (run) => ((text = run.text), 1) },
        runtime: { host: { report: () => {} } },
        ...(tools && { tools }),
      })
      return text
    }
    expect(await said()).toContain('No result of look_up with this input is on record')
    expect(tool.runs).toHaveLength(1)
    expect(await said({ look_up: ({ item }) => `${JSON.stringify(item)}: 9 USD` })).toBe('"tea": 9 USD')
    expect(await said({ look_up: async () => Promise.reject(new Error('no stub')) })).toContain('no stub')
    expect(tool.runs).toHaveLength(1)
    expect(await said({ look_up: 'armed' })).toBe('5 USD')
    expect(tool.runs).toHaveLength(2)
  })

  it('serves the results of agents that take over, and of those that work as tools', async () => {
    const tool = shopTool()
    const helper = defineAgent({
      name: 'helper',
      description: 'Looks up.',
      instructions: 'Look up.',
      model: often(honest),
      tools: [tool],
    })
    const asks: ScriptedStep = ({ messages }) =>
      messages.at(-1)?.role === 'tool'
        ? { text: 'Told.' }
        : { toolCalls: [{ name: 'helper', input: { task: 'Tea?' } }] }
    const boss = defineAgent({
      name: 'boss',
      instructions: 'Ask.',
      model: often(asks),
      tools: [agentTool(helper)],
    })
    const hands: ScriptedStep = () => ({ toolCalls: [{ name: 'transfer_to_helper', input: {} }] })
    const front = defineAgent({
      name: 'front',
      instructions: 'Hand over.',
      model: often(hands),
      handoffs: [handoff(helper)],
    })
    const report = await evaluate({
      ...{
        cases: [teaCase('tea')],
        ledger: memoryLedger(),
        scorers: { price: contains('5 USD'), told: contains('Told') },
      },
      agents: { boss, front },
    })
    expect(tool.runs).toHaveLength(0)
    expect(report.failures.shown).toEqual([])
    expect(report.scores).toMatchObject({
      price: { agents: { boss: { mean: 0 }, front: { mean: 1 } } },
      told: { agents: { boss: { mean: 1 }, front: { mean: 0 } } },
    })
  })

  it('gives each further equal call the next recorded result, and the last one again', async () => {
    const call = (content: string) => ({ ...teaCase('').calls![0]!, content })
    const asks: ScriptedStep = ({ messages }) => {
      const results = messages.flatMap((message) => (message.role === 'tool' ? message.results : []))
      return results.length < 3
        ? { toolCalls: [{ name: 'look_up', input: { item: 'tea' } }] }
        : { text: results.map(({ content }) => ('text' in content[0]! ? content[0].text : '')).join(', ') }
    }
    const report = await evaluate({
      cases: [
        { id: 'tea', input: 'Tea?', calls: [call('5 USD'), call('6 USD')], expected: '5 USD, 6 USD, 6 USD' },
      ],
      ...{ ledger: memoryLedger(), agents: { today: clerk(often(asks)) }, scorers: { exact: exact() } },
    })
    expect(report.scores['exact']!.agents['today']!.mean).toBe(1)
  })

  it('continues under its name with the runs that are missing', async () => {
    const ledger = memoryLedger()
    const model = often(honest)
    const [today, stop] = [clerk(model), new AbortController()]
    const asked = { cases: teaCases(6), agents: { today }, scorers, ledger, name: 'nightly', concurrency: 2 }
    let done = 0
    const first = await evaluate({
      ...asked,
      signal: stop.signal,
      onRun: () => void (++done === 2 && stop.abort()),
    })
    expect(first.isComplete).toBe(false)
    expect(first.cases).toBeLessThan(6)
    expect(formatReport(first)).toContain('stopped before all cases were done')
    const before = (model as ReturnType<typeof scriptedModel>).requests.length
    const second = await evaluate(asked)
    expect(second).toMatchObject({ isComplete: true, cases: 6 })
    expect(await Array.fromAsync(ledger.runs())).toHaveLength(6)
    const third = await evaluate(asked)
    expect({ ...third, durationMs: undefined }).toEqual({ ...second, durationMs: undefined })
    expect((model as ReturnType<typeof scriptedModel>).requests.length).toBeLessThanOrEqual(12 + 2)
    expect(before).toBeGreaterThan(0)
    const feedback = await Array.fromAsync(ledger.find({ types: ['feedback_given'] }))
    expect(feedback).toHaveLength(12)
  })

  it('makes no run at all where it was stopped before', async () => {
    const ledger = memoryLedger()
    const signal = AbortSignal.abort()
    const report = await evaluate({
      cases: teaCases(3),
      agents: { today: clerk(often(honest)) },
      scorers,
      ledger,
      signal,
    })
    expect(report).toMatchObject({ isComplete: false, cases: 0 })
    expect(await Array.fromAsync(ledger.runs())).toEqual([])
  })

  it('shows hostile names and texts as text, on one line each', async () => {
    for (const { name, text } of hostileTexts.filter(({ border }) => border === 'terminal')) {
      const report = await evaluate({
        ...{
          cases: [{ id: `${text}x`, input: 'Hi.' }],
          ledger: memoryLedger(),
          runtime: { host: { report: () => {} } },
        },
        agents: { [`${text}a`]: clerk(often(guessing)), b: clerk(scriptedModel([{ fail: 'protocol' }])) },
        scorers: {
          [`${text}s`]: () => ({ score: 0, note: text }),
          thrower: () => {
            throw new Error(text)
          },
        },
      })
      const lines = formatReport(report).split('\n')
      expect([
        name,
        lines.filter((line) =>
          /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/u.test(line),
        ),
      ]).toEqual([name, []])
      expect(lines.length).toBeLessThan(24)
    }
  })

  it('gives up a scorer that hangs, and goes on', async () => {
    const report = await evaluate({
      ...{
        cases: teaCases(2),
        agents: { today: clerk(often(honest)) },
        ledger: memoryLedger(),
        scorerTimeoutMs: 1,
      },
      scorers: { exact: exact(), hangs: async () => await new Promise<never>(() => {}) },
    })
    expect(report.scores).toMatchObject({ exact: { agents: { today: { mean: 1 } } }, hangs: { agents: {} } })
    expect(report.unscored.shown.map(({ what }) => what)).toEqual(
      Array(2).fill('hangs: It took longer than 1 ms.'),
    )
  })

  it('gives up a scorer when it is stopped, and scores the run when it goes on', async () => {
    const stopping = new AbortController()
    const ledger = memoryLedger()
    const asked = { cases: teaCases(1), agents: { today: clerk(often(honest)) }, ledger, name: 'tea' }
    const hangs = async (): Promise<number> => {
      stopping.abort()
      return await new Promise<never>(() => {})
    }
    const stopped = await evaluate({ ...asked, scorers: { slow: hangs }, signal: stopping.signal })
    expect(stopped).toMatchObject({ isComplete: false, cases: 0, unscored: { count: 0 } })
    const report = await evaluate({ ...asked, scorers: { slow: () => 1 } })
    expect(report).toMatchObject({ isComplete: true, cases: 1 })
    expect((await Array.fromAsync(ledger.runs())).length).toBe(1)
  })

  it('gives up a scorer that returns or throws what is no score, and goes on', async () => {
    const report = await evaluate({
      ...{ cases: teaCases(1), agents: { today: clerk(often(honest)) }, ledger: memoryLedger() },
      scorers: {
        nan: () => Number.NaN,
        free: () => ({ score: 1, costUsd: Number.NaN }),
        earns: () => ({ score: 1, costUsd: -5 }),
        bare: () => {
          throw Object.create(null)
        },
        late: async () => await Promise.reject(Symbol('late')),
      },
    })
    expect(report.scoringUsd).toBeUndefined()
    expect(report.unscored.shown.map(({ what }) => what)).toEqual([
      'nan: It returned NaN, and a score is a number from 0 to 1, true or false.',
      'free: It returned the costUsd NaN, and a cost is a number from 0.',
      'earns: It returned the costUsd -5, and a cost is a number from 0.',
      expect.stringMatching(/^bare: /),
      'late: Symbol(late)',
    ])
  })

  it('makes a run of its own for each agent and case, whatever spaces are in their names', async () => {
    const runs: (string | undefined)[] = []
    const agent = clerk(often(honest))
    await evaluate({
      ...{ cases: [teaCase('c d'), teaCase('d')], agents: { b: agent, 'b c': agent }, scorers },
      ledger: memoryLedger(),
      onRun: ({ runId }) => void runs.push(runId),
    })
    expect(new Set(runs).size).toBe(4)
  })

  it('reads no further ahead than it has runs under way', async () => {
    let [read, done, ahead] = [0, 0, 0]
    const cases = async function* () {
      for (const each of teaCases(100)) {
        read++
        yield each
      }
    }
    const report = await evaluate({
      ...{
        cases: cases(),
        agents: { today: clerk(often(guessing)) },
        scorers,
        ledger: memoryLedger(),
        concurrency: 2,
      },
      onRun: () => void (ahead = Math.max(ahead, read - done++)),
    })
    expect(report.cases).toBe(100)
    expect(ahead).toBeLessThanOrEqual(8)
  })

  it('refuses what it cannot use, with the place', async () => {
    const base = {
      cases: teaCases(1),
      agents: { today: clerk(often(honest)) },
      scorers,
      ledger: memoryLedger(),
    }
    for (const [wrong, said] of [
      [{ agents: {} }, 'no agents'],
      [{ scorers: {} }, 'no scorers'],
      [{ repeats: 0 }, 'repeats'],
      [{ cases: [teaCase('a'), teaCase('a')] }, 'two cases have the id "a"'],
      [{ cases: [{ id: 'a' } as EvalCase] }, 'case 1'],
      [{ cases: [{ ...teaCase('a'), ideal: 'x' } as EvalCase] }, 'Did you mean'],
      [{ dataset: [] }, 'Did you mean'],
      [{ tools: { look_up: 'on' as never } }, 'tools'],
      [{ limits: { maxTurns: 'x' as never } }, 'limits.maxTurns'],
      [{ runtime: { price: {} } as never }, 'Did you mean prices'],
      [{ signal: {} as never }, 'signal'],
      [{ scorers: { ' ': exact() } }, 'empty name'],
      [{ agents: { '': clerk(often(honest)) } }, 'empty name'],
    ] as const)
      await expect(evaluate({ ...base, ...wrong })).rejects.toThrow(said)
  })

  it('rejects, and stops, where its ledger fails or a caller throws', async () => {
    const ledger = memoryLedger()
    const asked = { cases: teaCases(9), agents: { today: clerk(often(honest)) }, scorers, ledger }
    const onRun = (): never => {
      throw new Error('the disk is full')
    }
    await expect(evaluate({ ...asked, onRun })).rejects.toThrow('the disk is full')
    await ledger.close()
    await expect(evaluate(asked)).rejects.toMatchObject({ code: 'ledger_unavailable' })
  })
})
