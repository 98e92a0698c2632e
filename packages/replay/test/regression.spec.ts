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
} from '@tallystick/core'
import { auditAll } from '@tallystick/core/machine'
import { copyPrefix, playProgram, createIdleAgent, sampleRunId } from '@tallystick/testkit'
import { randomProgram } from '@tallystick/testkit/random'
import { importEvents, splitLines } from '@tallystick/ledger'
import { exportRegression, replayRegression, type RegressionReport } from '@tallystick/replay'
import { sqliteLedger } from '@tallystick/ledger/sqlite'
import * as fc from 'fast-check'
import { effort } from '../../../scripts/testing/effort.ts'
import { describe, expect, it, onTestFinished } from 'vitest'
import { temporaryFolder } from './support/temporary-folder.ts'

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
