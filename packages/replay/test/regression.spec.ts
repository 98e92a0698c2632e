import { execFile } from 'node:child_process'
import { createReadStream, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { promisify } from 'node:util'
import {
  ConfigurationError,
  createRuntime,
  memoryLedger,
  LedgerDamagedError,
  RunNotFoundError,
  type Agent,
  type Ledger,
  type RunId,
  type RuntimeEvent,
  defineAgent,
  defineGuardrail,
  withRuntimeRules,
  type RunOptions,
  type RuntimeRules,
} from '@tallystick/core'
import { listReachableAgents } from '@tallystick/core/internal'
import { auditAll } from '@tallystick/core/machine'
import { importEvents, splitLines, verifyRun } from '@tallystick/ledger'
import { sqliteLedger } from '@tallystick/ledger/sqlite'
import {
  exportRegression,
  replayRegression,
  type RegressionReport,
  replayRun,
  diffRuns,
} from '@tallystick/replay'
import {
  copyPrefix,
  sampleRunId,
  scriptedModel,
  manualClock,
  seededRandom,
  testTool,
  waitUntilSettled,
} from '@tallystick/testkit'
import * as fc from 'fast-check'
import { playProgram, createIdleAgent } from '../../../scripts/testing/programs/play-program.ts'
import { randomProgram } from '../../../scripts/testing/programs/random-program.ts'
import { describe, expect, it, onTestFinished } from 'vitest'
import { effort } from '../../../scripts/testing/effort.ts'
import { temporaryFolder, temporaryFile } from './support/temporary-folder.ts'

/** The export of a ledger of the first released format, which holds every kind of event. */
const goldenLines = join(import.meta.dirname, '../../ledger/test/golden/format-1.jsonl')

// Put together here, so that no scanner takes this file for one that leaks.
const key = ['sk-', 'proj-0123456789abcdefghij'].join('')

/** The code of an agent in a file, with secrets in its words, its calls, and what comes back. */
const agentCode = `import { defineAgent } from '@tallystick/core'
import { scriptedModel, testTool } from '@tallystick/testkit'

const key = '${key}'
const steps = [
  {
    reasoning: 'I need the key ' + key + ' for this.',
    text: 'With ' + key + ' I look. ',
    toolCalls: [{ name: 'fetch', input: { url: 'https://ada:hunter2@example.com', headers: { Authorization: key } } }],
    usage: { inputTokens: 120, outputTokens: 17 },
  },
  { toolCalls: [{ name: 'pay', input: { usd: 5, password: 'open sesame' } }] },
  { text: 'Paid, with ' + key + '.' },
]
const fetch = testTool({ name: 'fetch', run: () => JSON.stringify({ 'set-cookie': 'session=abcdef', body: 'tea' }) })
const pay = testTool({ name: 'pay', effect: 'write', check: () => ({ kind: 'ask' }) })

export default defineAgent({
  name: 'shopper',
  instructions: 'Buy tea with ' + key + '.',
  model: scriptedModel(steps),
  tools: [fetch, pay],
})
`
const secrets = [key, key.slice(3, 20), 'hunter2', 'open sesame', 'abcdef', '0123456789']

/** A folder as a user's project is: an agent, and the packages that it needs. */
async function project(): Promise<{ folder: string; agent: Agent; ledger: Ledger; runId: RunId }> {
  const folder = temporaryFolder()
  mkdirSync(join(folder, 'node_modules', '@tallystick'), { recursive: true })
  for (const name of [
    '@tallystick/core',
    '@tallystick/testkit',
    '@tallystick/ledger',
    '@tallystick/replay',
    'vitest',
  ]) {
    symlinkSync(packageFolder(name), join(folder, 'node_modules', name))
  }
  writeFileSync(join(folder, 'package.json'), '{"type":"module"}')
  writeFileSync(join(folder, 'agent.ts'), agentCode)
  const module = (await import(pathToFileURL(join(folder, 'agent.ts')).href)) as { default: Agent }
  const ledger = sqliteLedger(join(folder, 'runs.db'))
  onTestFinished(() => ledger.close())
  const run = createRuntime({ ledger }).run(module.default, `My key is ${key}, buy tea.`)
  const [approval] = (await run.result).pendingApprovals
  await run.approve(approval?.toolCallId ?? '', { by: 'ada', input: { usd: 4, password: 'open sesame' } })
  expect(await run.result).toMatchObject({ reason: 'answered' })
  return { folder, agent: module.default, ledger, runId: run.id }
}

function packageFolder(name: string): string {
  let folder = dirname(fileURLToPath(import.meta.resolve(name)))
  while (!isPackage(folder, name)) folder = dirname(folder)
  return folder
}

function isPackage(folder: string, name: string): boolean {
  try {
    return (JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as { name?: string }).name === name
  } catch {
    return false
  }
}

/** Runs the tests of a folder with the real vitest, in a process of its own: how each file went, and what was said. */
async function vitest(folder: string): Promise<{ files: Record<string, string>; output: string }> {
  const report = join(folder, 'report.json')
  const reporters = ['--reporter', 'default', '--reporter', 'json', '--outputFile', report]
  // In one worker, which loads the packages once.
  const words = ['run', '--root', folder, '--no-isolate', '--maxWorkers', '1', ...reporters]
  const { VITEST: _inner, VITEST_POOL_ID: _pool, VITEST_WORKER_ID: _worker, ...env } = process.env
  const program = [join(packageFolder('vitest'), 'vitest.mjs'), ...words]
  const ended = promisify(execFile)(process.execPath, program, { env: { ...env, NO_COLOR: '1' } })
  const { stdout, stderr } = await ended.catch((error: { stdout: string; stderr: string }) => error)
  const { testResults } = JSON.parse(readFileSync(report, 'utf8')) as {
    testResults: { name: string; assertionResults: { status: string }[] }[]
  }
  const files = testResults.map(({ name, assertionResults }) => [
    basename(name),
    assertionResults.map(({ status }) => status).join(),
  ])
  return { files: Object.fromEntries(files) as Record<string, string>, output: stdout + stderr }
}

describe('a regression test of a run', () => {
  // Left to a thorough run: it starts vitest.
  it.skipIf(effort({ quick: true, thorough: false }))(
    'passes with the agent as it was, and fails with the event that today comes out otherwise',
    async () => {
      const { folder, ledger, runId } = await project()
      const write = (name: string, code: string, more: object = {}): ReturnType<typeof exportRegression> => {
        writeFileSync(join(folder, `${name}.agent.ts`), code)
        const agents = { from: `./${name}.agent.ts` }
        return exportRegression(ledger, runId, { file: join(folder, `${name}.spec.ts`), agents, ...more })
      }
      const written = await write('alike', agentCode)
      const { seq = 0 } = (await ledger.head(runId)) ?? {}
      expect(written).toEqual({
        ...{ runId, events: seq, test: join(folder, 'alike.spec.ts'), fixture: join(folder, 'alike.jsonl') },
        redacted: expect.any(Number),
      })
      expect(written.redacted).toBeGreaterThan(10)
      // What the caller calls a secret is masked in the agent of today too, or it would be a difference.
      const { fixture } = await write("it's", agentCode, { secrets: [/\btea\b/i] })
      expect(readFileSync(fixture, 'utf8')).not.toMatch(/\btea\b/i)
      await write('coffee', agentCode.replace('Buy tea', 'Buy coffee'))
      // A check of today that asks no person is found at the event in which a person was asked.
      await write('unasked', agentCode.replace("kind: 'ask'", "kind: 'run'"))

      const { files, output } = await vitest(folder)
      expect(files).toEqual({
        'alike.spec.ts': 'passed',
        "it's.spec.ts": 'passed',
        'coffee.spec.ts': 'failed',
        'unasked.spec.ts': 'failed',
      })
      expect(output).toContain(`run ${runId} of shopper comes out as it was recorded`)
      expect(output).toContain('"path": "definition.instructions"')
      expect(output).toContain('"path": "calls[pay].plan"')
      for (const secret of secrets) expect(output).not.toContain(secret)
    },
  )

  it('holds no secret, and a sound run all the same, of the same size', async () => {
    const { folder, agent, ledger, runId } = await project()
    const file = join(folder, 'tea.spec.ts')
    const { fixture } = await exportRegression(ledger, runId, { file, agents: { from: './agent.ts' } })
    const text = readFileSync(fixture, 'utf8')
    for (const secret of secrets) {
      expect(text).not.toContain(secret)
      expect(readFileSync(file, 'utf8')).not.toContain(secret)
    }
    const events = text
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as RuntimeEvent)
    const recorded = await Array.fromAsync(ledger.read(runId))
    expect(auditAll(events)).toMatchObject({ phase: 'done', reason: 'answered' })
    expect(auditAll(events)?.contextTokens).toBe(auditAll(recorded)?.contextTokens)
    // Masked in pieces, as it was streamed: put together, the pieces are the message.
    const deltas = events.flatMap((event) => (event.type === 'assistant_text_delta' ? [event.text] : []))
    expect(deltas.join('')).toContain(`With [redacted]${'*'.repeat(key.length - 10)} I look. `)
    expect(deltas.join('')).toHaveLength(
      recorded.flatMap((event) => (event.type === 'assistant_text_delta' ? [event.text] : [])).join('')
        .length,
    )
    const happy: RegressionReport = { runId, events: events.length }
    expect(await replayRegression(fixture, agent)).toEqual(happy)
    expect(await replayRegression(pathToFileURL(fixture), [agent])).toEqual(happy)
    let closed = 0
    const setUp = { agents: [agent], close: () => void closed++ }
    expect(await replayRegression(fixture, setUp)).toEqual(happy)
    const contexts: unknown[] = []
    await replayRegression(fixture, (context) => {
      contexts.push(context)
      return setUp
    })
    expect(closed).toBe(2)
    expect(contexts).toEqual([
      { verb: 'replay', ledgerPath: fixture, runId, agent: 'shopper', model: agent.definition.model },
    ])
  })

  it('is refused where it cannot be written, or driven', async () => {
    const { folder, agent, ledger, runId } = await project()
    const agents = { from: './agent.ts' }
    const write = (file: string, id: RunId = runId): Promise<unknown> =>
      exportRegression(ledger, id, { file: join(folder, file), agents })
    await expect(write('x.spec.ts', sampleRunId(9))).rejects.toThrow(RunNotFoundError)
    await expect(write('x.txt')).rejects.toThrow('Name a file such as refund.spec.ts')
    await write('absent/deep/x.spec.ts')
    await write('x.spec.ts')
    await expect(write('x.jsonl/y.spec.ts')).rejects.toThrow(/y\.jsonl cannot be written \(E[A-Z]+\)/)
    await expect(write('x.spec.ts')).rejects.toThrow('is there already')
    const fixture = join(folder, 'x.jsonl')
    const other = { ...agent, name: 'other' }
    await expect(replayRegression(fixture, other)).rejects.toThrow(ConfigurationError)
    const text = readFileSync(fixture, 'utf8')
    writeFileSync(fixture, text.slice(0, -5))
    await expect(replayRegression(fixture, agent)).rejects.toThrow('does not hold one whole run')
    writeFileSync(fixture, text.replace('"reason":"answered"', '"reason":"stopped"'))
    await expect(replayRegression(fixture, agent)).resolves.toMatchObject({ divergence: expect.any(Object) })
    writeFileSync(fixture, text.replace('"usd":5', '"usd":3'))
    await expect(replayRegression(fixture, agent)).rejects.toThrow(LedgerDamagedError)
    writeFileSync(fixture, '')
    await expect(replayRegression(fixture, agent)).rejects.toThrow(LedgerDamagedError)
  })

  it('drives random runs as they were, crashes, denials and cancels included', async () => {
    const folder = temporaryFolder()
    let files = 0
    await fc.assert(
      fc.asyncProperty(randomProgram, async (program) => {
        const { events, ledger } = await playProgram(program)
        const { runId } = events[0] as RuntimeEvent
        const agents = { from: './agent.ts' }
        // The first has nothing to mask; in the second what the user said counts as a secret.
        for (const secrets of [[], [/Go\./]]) {
          const file = join(folder, `${++files}.spec.ts`)
          const { fixture, redacted } = await exportRegression(ledger, runId, { file, agents, secrets })
          expect(redacted > 0).toBe(secrets.length > 0)
          expect(await replayRegression(fixture, createIdleAgent(program), { secrets })).toEqual({
            ...{ runId, events: events.length },
          })
        }
      }),
      { numRuns: 20 },
    )
  })

  it('drives a run that was still under way as far as it goes, wherever that is', async () => {
    const folder = temporaryFolder()
    let files = 0
    await fc.assert(
      fc.asyncProperty(randomProgram, fc.nat(), async (program, cut) => {
        const { events } = await playProgram(program)
        const prefix = events.slice(0, 2 + (cut % (events.length - 1)))
        const ledger = memoryLedger()
        await copyPrefix(prefix, ledger)
        const { runId } = prefix[0] as RuntimeEvent
        const file = join(folder, `${++files}.spec.ts`)
        const { fixture } = await exportRegression(ledger, runId, { file, agents: { from: './agent.ts' } })
        expect(await replayRegression(fixture, createIdleAgent(program))).toEqual({
          runId,
          events: prefix.length,
        })
      }),
      { numRuns: 30 },
    )
  })

  it('keeps the laws over every kind of event, whatever words of it are masked', async () => {
    const [folder, ledger] = [temporaryFolder(), memoryLedger()]
    await importEvents(ledger, splitLines(createReadStream(goldenLines)))
    const secrets = [/\b[A-Z]\w*/]
    let runs = 0
    for await (const { runId, head } of ledger.runs()) {
      const options = { file: join(folder, `${++runs}.spec.ts`), agents: { from: './agent.ts' }, secrets }
      const { fixture, events, redacted } = await exportRegression(ledger, runId, options)
      expect(events).toBe(head.seq)
      expect(redacted).toBeGreaterThan(0)
      // What is imported is audited, law by law.
      const report = await importEvents(memoryLedger(), splitLines(createReadStream(fixture)))
      expect(report).toEqual({ runs: 1, events, present: 0 })
    }
    expect(runs).toBeGreaterThan(15)
  })
})

it('a run with rules of its own replays to itself where the agents get them, and names what differs without', async () => {
  const guardrails = [defineGuardrail({ name: 'brief', on: 'input', check: () => ({ replace: 'Brief.' }) })]
  const clerk = defineAgent({
    ...{ name: 'clerk', description: 'Ends it.', instructions: 'End.' },
    model: scriptedModel([{ text: 'Done.' }]),
  })
  const desk = defineAgent({
    ...{ name: 'desk', instructions: 'Hand over.', handoffs: [clerk] },
    model: scriptedModel([{ toolCalls: [{ name: 'transfer_to_clerk', input: {} }] }]),
  })
  const ledger = memoryLedger()
  const own = {
    guardrails,
    nestHandoffHistory: true,
    inputFilter: async <T>(messages: T): Promise<T> => messages,
  }
  const { runId, seq } = await createRuntime({ ledger }).run(desk, 'Go.', own).result
  const agents = [desk, clerk].map((agent) => withRuntimeRules(agent, own))
  const replayed = await replayRun(
    ledger,
    runId,
    (name) => agents.find((agent) => agent.name === name) ?? desk,
  )
  expect(replayed).toEqual({ runId, events: seq })
  const bare = await replayRun(ledger, runId, (name) => (name === 'desk' ? desk : clerk))
  expect(bare.divergence).toMatchObject({
    seq: 1,
    differences: [{ path: expect.stringContaining('definition') }, {}],
  })
})

it('edits of a session verify and replay to themselves, and so do the runs between them', async () => {
  const ledger = sqliteLedger(temporaryFile())
  const model = scriptedModel([{ text: 'One.' }, { text: 'Two.' }])
  const agent = defineAgent({ name: 'agent', instructions: 'Act.', model })
  const runtime = createRuntime({ ledger, agents: [agent] })
  const session = runtime.session('chat')
  await session.append(
    [
      { role: 'user', content: 'Hello.' },
      { role: 'assistant', content: 'Hi.' },
    ],
    { by: 'ada' },
  )
  await runtime.run(agent, 'Go.', { sessionId: 'chat' }).result
  await session.pop({ by: 'ada', reason: 'It was wrong.' })
  await (await session.branch('other')).append({ role: 'user', content: 'And here?' })
  const onInput = <T>(history: readonly T[], input: T): readonly T[] => [...history.slice(-1), input]
  await runtime.run(agent, 'Go on.', { sessionId: 'other', onInput }).result
  await session.clear()
  let runs = 0
  for await (const { runId, head } of ledger.runs()) {
    runs++
    expect(await verifyRun(ledger, runId)).toMatchObject({ ok: true })
    expect(await replayRun(ledger, runId, () => agent)).toEqual({ runId, events: head.seq })
  }
  expect(runs).toBe(7)
  await ledger.close()
})

it('is recorded again by a replay, and no difference between two runs', async () => {
  const ledger = memoryLedger()
  const model = scriptedModel([{ text: 'Four.' }, { text: 'Four.' }])
  const agent = defineAgent({ name: 'sums', instructions: 'Add.', model })
  const runtime = createRuntime({ ledger, agents: [agent] })
  const [one, two] = [runtime.run(agent, 'Two and two?'), runtime.run(agent, 'Two and two?')]
  await Promise.all([one.result, two.result])
  await one.feedback({ by: 'ada', score: 0, note: 'Not the sum.' })
  const events = (await Array.fromAsync(ledger.read(one.id))).length
  expect(await replayRun(ledger, one.id, () => agent)).toEqual({ runId: one.id, events })
  const { differences, left, right } = await diffRuns(ledger, one.id, two.id)
  expect(differences).toEqual([])
  expect([left.reason, right.reason]).toEqual(['answered', 'answered'])
})

// A run that was given something over its agents replays to itself, with the agents alone.

const look = testTool({ name: 'look', run: () => 'seen' })

function office() {
  const own = scriptedModel([], 'own')
  const second = scriptedModel([], 'second')
  const billing = defineAgent({
    name: 'billing',
    instructions: (context: unknown) => `Bill ${String(context)}.`,
    model: own,
    tools: [look],
    fallbacks: [second],
  })
  return defineAgent({ name: 'desk', instructions: 'Greet.', model: own, handoffs: [billing] })
}

it.each<readonly [string, RunOptions]>([
  ['a model of another name', { model: scriptedModel([], 'given') }],
  ['a model that one of its agents has', { model: scriptedModel([], 'second') }],
  ['a choice of tools', { toolChoice: 'any', parallelToolCalls: false }],
  ['labels and a key', { workflowName: 'w', tags: ['t'], metadata: { a: 1 }, idempotencyKey: 'k' }],
  ['an aborted signal', { signal: AbortSignal.abort(new Error('late')) }],
])('that was given %s', async (_name, options) => {
  const [ledger, clock] = [memoryLedger(), manualClock()]
  const steps = [
    { toolCalls: [{ name: 'transfer_to_billing', input: {} }] },
    { toolCalls: [{ name: 'look', input: {} }] },
    { text: 'Billed.' },
  ]
  const model = scriptedModel(steps, options.model?.modelId ?? 'own')
  const agent = office()
  const runtime = createRuntime({ ledger, host: { clock, random: seededRandom(1) } })
  const run = runtime.run(agent, 'Go.', { ...options, model, context: 'ada' })
  await waitUntilSettled(clock, run.result)
  const today = new Map(listReachableAgents(office()).map((each) => [each.name, each]))
  const events: string[] = []
  for await (const { type } of ledger.read(run.id)) events.push(type)
  const report = await replayRun(ledger, run.id, (name) => today.get(name)!, { context: 'ada' })
  expect(report).toEqual({ runId: run.id, events: events.length })
  expect(events.includes('agent_handed_off')).toBe(options.signal === undefined)
})

// A run that a runtime drove by rules of its own replays to itself with these rules, and differs without them.

const rules: RuntimeRules = {
  guardrails: [defineGuardrail({ name: 'quiet', on: 'input', check: () => 'pass' })],
  handoffFilter: (messages) => messages.slice(0, 1),
  prepareTurn: ({ request }) => ({ instructions: `${request.instructions} Briefly.` }),
}

it('replays to itself with the rules of its runtime', async () => {
  const clerk = defineAgent({
    ...{ name: 'clerk', description: 'Ends it.', instructions: 'End.' },
    model: scriptedModel([{ text: 'Done.' }]),
  })
  const steps = [{ toolCalls: [{ name: 'transfer_to_clerk', input: {} }] }]
  const desk = defineAgent({
    ...{ name: 'desk', instructions: 'Hand over.', model: scriptedModel(steps), handoffs: [clerk] },
  })
  const [clock, ledger] = [manualClock(), memoryLedger()]
  const run = createRuntime({ ledger, host: { clock }, ...rules }).run(desk, 'Go.')
  expect(await waitUntilSettled(clock, run.result)).toMatchObject({ text: 'Done.', agent: 'clerk' })

  const replayed = async (held: RuntimeRules) => {
    const agents = listReachableAgents(desk).map((agent) => withRuntimeRules(agent, held))
    const named = (name: string): Agent<unknown> => agents.find((agent) => agent.name === name)!
    return (await replayRun(ledger, run.id, named)).divergence
  }
  expect(await replayed(rules)).toBeUndefined()
  expect((await replayed({ ...rules, guardrails: [] }))?.recorded?.type).toBe('run_started')
  expect((await replayed({ ...rules, handoffFilter: undefined }))?.recorded?.type).toBe('agent_handed_off')
  expect((await replayed({ ...rules, prepareTurn: undefined }))?.recorded?.type).toBe('model_call_started')
})
