import { generateKeyPairSync } from 'node:crypto'
import { chmod, cp, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { createRuntime, defineAgent, type Agent, type RunResult } from '@tallystick/core'
import type { StandingOptions } from '@tallystick/core/vocabulary'
import { scriptedModel, testTool } from '@tallystick/testkit'
import { sqliteKeyring, sqliteLedger } from '@tallystick/ledger/sqlite'
import { shopAgent } from './shop.ts'

/** The status of the last run of an example's ledger. */
export type ExampleStanding = 'done' | 'waiting' | 'deferred' | 'standing'

/** Folders in which what the help shows is typed. */
export interface ExampleFolders extends AsyncDisposable {
  /** A folder of its own, with a ledger whose last run has that status, and all files that an example names. */
  open(
    standing: ExampleStanding,
  ): Promise<{ readonly folder: string; readonly environment: NodeJS.ProcessEnv }>
}

const assistant = (): Agent => ({ ...shopAgent(), name: 'assistant' })

/** Has a job done outside, and continues when it gets the result. */
const exporter = (): Agent =>
  defineAgent({
    name: 'exporter',
    instructions: '',
    model: scriptedModel([{ toolCalls: [{ name: 'export', input: {} }] }]),
    tools: [
      testTool({
        name: 'export',
        run: (_call, report) => {
          report.defer('job-7')
          return ''
        },
      }),
    ],
  })

/** Chance by which the id of a run ends in the digits that an example names. */
function endingIn(digits: string): () => number {
  const before = Array.from({ length: 17 - digits.length }, () => 0)
  const drawn = [...before, ...digits.split('').map((digit) => Number.parseInt(digit, 16) / 16)]
  return () => drawn.shift() ?? 0
}

/** Drives a run in a ledger until it rests, or, approved, until it is done. */
async function drive(
  path: string,
  agent: Agent,
  own: {
    readonly random?: () => number
    readonly toItsEnd?: boolean
    readonly standing?: StandingOptions
  },
): Promise<RunResult> {
  const ledger = sqliteLedger(path)
  const { random } = own
  const runtime = createRuntime({ ledger, agents: [agent], ...(random && { host: { random } }) })
  const { standing } = own
  const run = runtime.run(agent, 'Buy tea.', standing ? { sessionId: 'tea' } : {})
  let result = await run.result
  if (own.toItsEnd) {
    for (const { toolCallId } of result.pendingApprovals)
      await run.approve(toolCallId, { by: 'ann', standing })
    result = await run.result
  }
  await ledger.close()
  return result
}

/** What an example finds beside its ledger. */
async function furnish(folder: string): Promise<void> {
  const { privateKey, publicKey } = generateKeyPairSync('ed25519')
  const program = join(import.meta.dirname, '..', '..', 'src', 'main.ts')
  const shop = JSON.stringify(import.meta.resolve('./shop.ts'))
  const core = JSON.stringify(import.meta.resolve('@tallystick/core'))
  const server = fileURLToPath(import.meta.resolve('@modelcontextprotocol/server-filesystem/dist/index.js'))
  const mcpServer = { command: process.execPath, args: [server, folder] }
  const files = {
    'key.pem': privateKey.export({ type: 'pkcs8', format: 'pem' }),
    'key.pub': publicKey.export({ type: 'spki', format: 'pem' }),
    'tallystick.config.mjs': `import { shopAgent } from ${shop}\nexport default { agents: [{ ...shopAgent(), name: 'assistant' }] }\n`,
    'rules.json': JSON.stringify({
      version: 1,
      rules: [{ tool: 'search', decision: 'allow' }],
      examples: [{ call: { tool: 'search' }, decision: 'allow' }],
    }),
    'my-store.ts': `import { memoryLedger } from ${core}\nexport default () => ({ open: memoryLedger, lacks: ['durable', 'shared'] })\n`,
    'evaluation.ts': `import { defineAgent } from ${core}
import { defineEvaluation, exact } from ${JSON.stringify(import.meta.resolve('@tallystick/evals'))}
import { scriptedModel } from ${JSON.stringify(import.meta.resolve('@tallystick/testkit'))}
export default defineEvaluation({
  cases: [{ id: 'tea', input: 'How much is tea?', expected: '5 USD' }],
  agents: { today: defineAgent({ name: 'shop', instructions: 'Sell.', model: scriptedModel([{ text: '5 USD' }]) }) },
  scorers: { exact: exact() },
})
`,
    'claude_desktop_config.json': JSON.stringify({ mcpServers: { files: mcpServer } }),
    'bin/tallystick': `#!/bin/sh\nexec '${process.execPath}' '${program}' "$@"\n`,
  }
  await mkdir(join(folder, 'bin'))
  for (const [name, text] of Object.entries(files)) await writeFile(join(folder, name), text)
  await chmod(join(folder, 'bin', 'tallystick'), 0o755)
  const keys = sqliteKeyring(join(folder, 'keys.db'))
  await keys.keyOf('customer-7')
  keys.close()
}

/** Makes the folders that others are copied from. */
export async function exampleFolders(): Promise<ExampleFolders> {
  const root = await mkdtemp(join(tmpdir(), 'tallystick-examples-'))
  const made = join(root, 'done')
  await mkdir(made)
  await furnish(made)
  const ledger = join(made, 'runs.db')
  await drive(ledger, assistant(), { random: endingIn('5f2c91'), toItsEnd: true })
  await drive(ledger, assistant(), { toItsEnd: true })
  for (const [standing, agent] of [
    ['waiting', assistant()],
    ['deferred', exporter()],
    ['standing', assistant()],
  ] as const) {
    await cp(made, join(root, standing), { recursive: true })
    const own = { toItsEnd: true, standing: { for: 'session', expiresInMs: 3_600_000 } } as const
    await drive(join(root, standing, 'runs.db'), agent, standing === 'standing' ? own : {})
  }
  let opened = 0
  return {
    async open(standing) {
      const folder = join(root, `${++opened}`)
      await cp(join(root, standing), folder, { recursive: true })
      const { FORCE_COLOR: _color, npm_lifecycle_event: _script, ...environment } = process.env
      const path = [join(folder, 'bin'), environment['PATH'] ?? ''].join(delimiter)
      return { folder, environment: { ...environment, PATH: path } }
    },
    [Symbol.asyncDispose]: () => rm(root, { recursive: true, force: true }),
  }
}
