import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import {
  agentTool,
  ConfigurationError,
  createRuntime,
  defineAgent,
  LedgerDamagedError,
  memoryLedger,
  type Agent,
  type AgentOptions,
  type Ledger,
  type RunId,
  defineGuardrail,
  type Tool,
} from '@tallystick/core'
import { exportRegression, replayRegression, type RegressionOptions, replayRun } from '@tallystick/replay'
import { scriptedModel, testTool } from '@tallystick/testkit'
import { describe, expect, it } from 'vitest'
import { temporaryFolder } from './support/temporary-folder.ts'

type Own = Partial<Pick<AgentOptions<unknown>, 'instructions' | 'model' | 'name' | 'tools'>>
const clerk = (own: Own = {}): Agent<unknown> =>
  defineAgent<unknown>({
    ...{ name: 'my\n clerk', instructions: 'Help.', tools: [testTool({ name: 'look' })] },
    model: scriptedModel([{ toolCalls: [{ name: 'look', input: { note: 'tea' } }] }, { text: 'Sold.' }]),
    ...own,
  })

interface Written {
  readonly ledger: Ledger
  readonly runId: RunId
  readonly events: number
  /** Writes the run as a test of its own; returns the path of its fixture and what is in both files. */
  readonly write: (
    name: string,
    options?: Partial<RegressionOptions>,
  ) => Promise<{
    readonly fixture: string
    readonly redacted: number
    readonly test: string
    readonly lines: string
  }>
}

async function written(agent = clerk()): Promise<Written> {
  const [ledger, folder] = [memoryLedger(), temporaryFolder()]
  const { runId, seq } = await createRuntime({ ledger }).run(agent, 'Sell my tea.').result
  return {
    ...{ ledger, runId, events: seq },
    async write(name, options) {
      const file = join(folder, name)
      const agents = { from: './agents.ts' }
      const { fixture, redacted } = await exportRegression(ledger, runId, { file, agents, ...options })
      return { fixture, redacted, test: readFileSync(file, 'utf8'), lines: readFileSync(fixture, 'utf8') }
    },
  }
}

describe('the file of a regression test', () => {
  it('is code that a person can read', async () => {
    const { runId, events, write } = await written()
    const { test } = await write('the sale.spec.ts')
    expect(test)
      .toBe(`// A run of my clerk that took place, with its secrets masked. It is driven again by today's code of its
// agents, with the recorded replies and results: no model is called, and no tool runs.
import { replayRegression } from '@tallystick/replay'
import { expect, it } from 'vitest'
import agents from './agents.ts'

it('run ${runId} of my clerk comes out as it was recorded', async () => {
  const fixture = new URL('the%20sale.jsonl', import.meta.url)
  expect(await replayRegression(fixture, agents)).toEqual({ runId: '${runId}', events: ${events} })
})
`)
  })

  it('imports the agents by the name that they are exported under', async () => {
    const { write } = await written()
    const lineOf = async (file: string, name: string): Promise<unknown> =>
      /^import .* from '\.\/.*$/m.exec(
        (await write(file, { agents: { from: './agents.ts', name } })).test,
      )?.[0]
    expect(await lineOf('a.spec.ts', 'agents')).toBe("import { agents } from './agents.ts'")
    expect(await lineOf('b.test.mts', 'shop')).toBe("import { shop as agents } from './agents.ts'")
    await expect(write('c.spec.ts', { agents: { from: './a.ts', name: 'a b' } })).rejects.toThrow(
      'not an identifier',
    )
  })

  it('passes on what it was written with', async () => {
    const { write } = await written()
    const call = async (file: string, options: Partial<RegressionOptions>): Promise<unknown> =>
      /replayRegression\(fixture, (.*?)\)\)\.toEqual/.exec((await write(file, options)).test)?.[1]
    expect(await call('a.spec.ts', { secrets: [/tea/i, /Sell/] })).toBe(
      'agents, { secrets: [/tea/i, /Sell/] }',
    )
    expect(await call('b.spec.ts', { definitions: 'recorded' })).toBe("agents, { definitions: 'recorded' }")
    expect(await call('c.spec.js', { definitions: 'recorded', secrets: [/tea/] })).toBe(
      "agents, { secrets: [/tea/], definitions: 'recorded' }",
    )
    expect(await call('d.spec.cjs', { definitions: 'today', secrets: [] })).toBe('agents')
  })

  it('counts the events in which something was masked', async () => {
    const { ledger, runId, write } = await written()
    const { redacted, lines } = await write('a.spec.ts', { secrets: [/Sell my/] })
    const recorded = await Array.fromAsync(ledger.read(runId))
    const changed = lines
      .trimEnd()
      .split('\n')
      .map((line) => (JSON.parse(line) as { readonly type: string }).type)
    expect(changed).toHaveLength(recorded.length)
    // What the user said, and the digest of each request that it is part of.
    expect(redacted).toBe(3)
    expect((await write('b.spec.ts')).redacted).toBe(0)
  })

  it('is refused with a name that vitest would not run, or options that are wrong', async () => {
    const { ledger, runId, write } = await written()
    for (const name of ['a.spec.tsx', 'a.spec.json', '.spec.ts', 'a']) {
      await expect(write(name)).rejects.toThrow(`${name}, which vitest would not run`)
    }
    const agents = { from: './agents.ts' }
    const wrong = [
      ...[
        { file: '', agents },
        { file: 'a.spec.ts', agents: { from: '' } },
      ],
      ...[{ file: 'a.spec.ts', agents: { from: 'a', name: '' } }, { file: 'a.spec.ts' }],
      ...[
        { file: 'a.spec.ts', agents, secrets: ['a'] },
        { file: 'a.spec.ts', agents, definitions: 'then' },
      ],
      { file: 'a.spec.ts', agents, secret: [] },
    ]
    for (const options of wrong) {
      await expect(exportRegression(ledger, runId, options as RegressionOptions)).rejects.toThrow(
        ConfigurationError,
      )
    }
  })
})

describe('patterns of the caller', () => {
  const hexadecimal = /[0-9a-f]{8,}/
  const looks = (...notes: readonly string[]) => ({
    toolCalls: notes.map((note) => ({ name: 'look', input: { note } })),
  })

  it('leave the ids of the run and of its calls as they are, and mask what was said', async () => {
    const agent = clerk({
      model: scriptedModel([looks('deadbeef01', 'deadbeef02'), looks('tea'), { text: 'Sold for cafe0123.' }]),
    })
    const { ledger, runId, events, write } = await written(agent)
    const recorded = await Array.fromAsync(ledger.read(runId))
    const { fixture, lines } = await write('a.spec.ts', { secrets: [hexadecimal] })
    expect(lines).not.toMatch(/deadbeef|cafe0123/)
    for (const { toolCallId = runId } of recorded) expect(lines).toContain(toolCallId)
    expect(await replayRegression(fixture, agent, { secrets: [hexadecimal] })).toEqual({ runId, events })
  })

  it('leave the ids of a child run and of its parent as they are', async () => {
    const model = scriptedModel([{ text: 'The code is cafe0123.' }])
    const helper = defineAgent({ name: 'helper', description: 'Helps.', instructions: 'Help.', model })
    const agent = clerk({
      tools: [agentTool(helper)],
      model: scriptedModel([
        { toolCalls: [{ name: 'helper', input: { task: 'Help.' } }] },
        { text: 'Done.' },
      ]),
    })
    const { ledger, runId, events, write } = await written(agent)
    const runs = await Array.fromAsync(ledger.runs())
    expect(runs).toHaveLength(2)
    const { fixture, lines } = await write('a.spec.ts', { secrets: [hexadecimal] })
    expect(lines).not.toContain('cafe0123')
    for (const run of runs) expect(lines).toContain(`"${run.runId}"`)
    const child = runs.find((run) => run.runId !== runId)!.runId
    const file = join(temporaryFolder(), 'child.spec.ts')
    const options = { file, agents: { from: './agents.ts' }, secrets: [hexadecimal] }
    const ofChild = await exportRegression(ledger, child, options)
    expect(readFileSync(ofChild.fixture, 'utf8')).toContain(`"${runId}"`)
    expect(readFileSync(ofChild.fixture, 'utf8')).not.toContain('cafe0123')
    expect(await replayRegression(fixture, agent, { secrets: [hexadecimal] })).toEqual({ runId, events })
  })

  it('are refused where they mask so much that the rest is not a run', async () => {
    const { ledger, runId } = await written()
    const file = join(temporaryFolder(), 'a.spec.ts')
    const options = { file, agents: { from: './agents.ts' }, secrets: [/[a-z]+/] }
    await expect(exportRegression(ledger, runId, options)).rejects.toThrow(ConfigurationError)
    await expect(exportRegression(ledger, runId, options)).rejects.toThrow(
      'a pattern in secrets masks more than secrets',
    )
    expect(existsSync(file)).toBe(false)
  })
})

describe('a regression test that runs', () => {
  it('reports the first event that came out otherwise, in short', async () => {
    const { runId, write } = await written()
    const { fixture } = await write('a.spec.ts')
    expect(await replayRegression(fixture, clerk({ instructions: 'Help!' }))).toEqual({
      ...{ runId, events: 0 },
      divergence: {
        ...{ seq: 1, turn: 0, recorded: 'run_started', happened: 'run_started' },
        differences: [{ path: 'definition.instructions', recorded: 'Help.', happened: 'Help!' }],
      },
    })
    const stopping = defineAgent<unknown>({
      ...{ name: 'my\n clerk', instructions: 'Help.', tools: [testTool({ name: 'look' })] },
      ...{ model: scriptedModel([]), stopWhen: () => true },
    })
    const report = await replayRegression(fixture, stopping)
    expect(report.divergence).toMatchObject({
      ...{ turn: 2, recorded: 'model_call_started', happened: 'run_finished' },
    })
    expect(await replayRegression(fixture, stopping, { definitions: 'recorded' })).toEqual(report)
    expect(
      await replayRegression(fixture, clerk({ instructions: 'Help!' }), { definitions: 'recorded' }),
    ).not.toHaveProperty('divergence')
  })

  it('asks the policy of the setup, passes its context on, and closes it, however the replay ends', async () => {
    const { write } = await written()
    const { fixture } = await write('a.spec.ts')
    let closed = 0
    const close = (): void => void closed++
    const asking = await replayRegression(fixture, { agents: [clerk()], approval: () => 'ask', close })
    expect(asking.divergence?.differences).toEqual([
      { path: 'calls[look].plan', recorded: 'run', happened: 'ask' },
    ])
    const seen: unknown[] = []
    const watching = defineAgent<unknown>({
      ...{ name: 'my\n clerk', instructions: 'Help.', tools: [testTool({ name: 'look' })] },
      ...{ model: scriptedModel([]), approval: ({ context }) => (seen.push(context), 'run' as const) },
    })
    const setup = { agents: [watching], context: 'the shop', close }
    await replayRegression(fixture, setup, { definitions: 'recorded' })
    expect(seen).toEqual(['the shop'])
    const failing = replayRegression(fixture, () => Promise.resolve({ agents: [], close }))
    await expect(failing).rejects.toThrow('an agent named my\n clerk')
    expect(closed).toBe(3)
  })

  it('is refused over a file of several runs, or with arguments that are wrong', async () => {
    const [one, two] = [await written(), await written()]
    const [{ fixture, lines }, other] = [await one.write('a.spec.ts'), await two.write('a.spec.ts')]
    writeFileSync(fixture, lines + other.lines)
    await expect(replayRegression(fixture, clerk())).rejects.toThrow(LedgerDamagedError)
    writeFileSync(fixture, `${lines}{"runId":`)
    await expect(replayRegression(fixture, clerk())).rejects.toThrow('does not hold one whole run')
    writeFileSync(fixture, lines)
    const wrong: readonly unknown[][] = [
      ...[
        ['', clerk()],
        [7, clerk()],
        [undefined, clerk()],
      ],
      ...[
        [fixture, null],
        [fixture, 'agents'],
        [fixture, undefined],
      ],
      ...[
        [fixture, clerk(), { secrets: ['a'] }],
        [fixture, clerk(), { definitions: 'then' }],
      ],
    ]
    for (const [place, agents, options] of wrong) {
      await expect(replayRegression(place as string, agents as Agent, options as object)).rejects.toThrow(
        ConfigurationError,
      )
    }
  })
})

// Inputs that were repaired are repaired again: by the tools of today, or as it is on record where these are not there.

/** Takes `{ n: 1 }`, and makes that of everything but `{ n: 0 }`. */
function picky(isGuess: boolean): Tool {
  const tool = testTool({
    name: 'pick',
    effect: 'write',
    check: ({ n }) =>
      typeof n === 'number'
        ? { kind: 'run' }
        : { kind: 'refuse', outcome: 'invalid_input', text: 'No number.' },
  })
  const repair: Tool['repair'] = ({ input }) =>
    'no' in input ? undefined : { input: { n: 1 }, repairs: ['a mistake'], isGuess }
  return { ...tool, repair }
}

async function played(isGuess: boolean, more: (tool: Tool) => Partial<AgentOptions<string, unknown>>) {
  const ledger = memoryLedger()
  const inputs = ['{n:1', { n: '1' }, { n: 5 }, { no: 1 }]
  const model = scriptedModel([
    { toolCalls: inputs.map((input) => ({ name: 'pick', input: input as string })) },
    { text: 'Done.' },
  ])
  const agent = defineAgent({ name: 'a', instructions: '', model, ...more(picky(isGuess)) } as AgentOptions)
  const runtime = createRuntime({ ledger, agents: [agent] })
  const run = runtime.run(agent, 'Go.', { context: { user: 'ada' } })
  let { pendingApprovals, status } = await run.result
  const asked = pendingApprovals.map(({ reason }) => reason)
  while (status === 'suspended') {
    const next = runtime.resume(run.id, { context: { user: 'ada' } })
    for (const approval of pendingApprovals) await next.approve(approval, { by: 'ada' })
    ;({ pendingApprovals, status } = await next.result)
  }
  const events = await Array.fromAsync(ledger.read(run.id))
  const calls = events.find((event) => event.type === 'tool_requests_collected')?.calls
  /** What differs in a replay, 0 where nothing does. */
  const replayed = async (options: object) => {
    const { divergence, events: same } = await replayRun(ledger, run.id, () => agent, options)
    return divergence ?? same - events.length
  }
  return { asked, calls, replayed }
}

const note = "The model's input did not fit and was repaired: a mistake."

describe.each([
  ['that are sure', false],
  ['that are guesses', true],
])('repairs %s', (_how, isGuess) => {
  it('of tools of the agent replay with its code and without the context', async () => {
    const { asked, calls, replayed } = await played(isGuess, (tool) => ({ tools: [tool] }))
    expect(asked).toEqual(isGuess ? [note, note] : [])
    expect(calls?.map(({ input, repairs }) => [input, repairs?.length])).toEqual([
      [{ n: 1 }, 1],
      [{ n: 1 }, 1],
      [undefined, undefined],
      [undefined, undefined],
    ])
    expect(await replayed({ context: { user: 'ada' } })).toBe(0)
    expect(await replayed({})).toBe(0)
  })

  it('of tools of a source replay where the source has no tools any more', async () => {
    const source = { tools: [] as Tool[] }
    const { replayed } = await played(isGuess, (tool) => {
      source.tools = [tool]
      return { toolSource: source }
    })
    source.tools = []
    expect(await replayed({ context: { user: 'ada' } })).toBe(0)
    expect(await replayed({})).toBe(0)
  })

  it('that a guardrail changed after that replay as well', async () => {
    const more = defineGuardrail({
      ...{ name: 'more', on: 'tool_input' },
      check: ({ input }: { readonly input: { readonly n?: unknown } }) =>
        input.n === 1 ? { replace: { n: 2 } } : 'pass',
    })
    const { calls, replayed } = await played(isGuess, (tool) => ({ tools: [tool], guardrails: [more] }))
    expect(calls?.[0]).toMatchObject({ input: { n: 2 }, repairs: ['a mistake'] })
    expect(await replayed({ context: { user: 'ada' } })).toBe(0)
    expect(await replayed({})).toBe(0)
  })
})
