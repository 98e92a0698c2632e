// Holds the MCP client and server of `@tallystick/tools/mcp` to the public conformance suite of the protocol, whose version is
// pinned: all scored client scenarios of the newest revision, the core suite, and the server scenarios about tools.
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { parseArgs } from 'node:util'

const { values: options } = parseArgs({
  options: { scenario: { type: 'string' }, verbose: { type: 'boolean', default: false } },
})
const tools = join(import.meta.dirname, '../packages/tools')
const require = createRequire(join(tools, 'package.json'))
const suite = join(
  dirname(require.resolve('@modelcontextprotocol/conformance/package.json')),
  'dist/index.js',
)
const program = (name: string): string => join(tools, 'test/conformance', `${name}.ts`)
const results = mkdtempSync(join(tmpdir(), 'tallystick-conformance-'))
const newest = '2026-07-28'

/** Server scenarios that ask nothing but tools of a server. */
const serverScenarios: Readonly<Record<string, readonly string[]>> = {
  [newest]: [
    'tools-list',
    'tools-call-simple-text',
    'tools-call-image',
    'tools-call-audio',
    'tools-call-error',
    'tools-call-with-progress',
    'dns-rebinding-protection',
  ],
  '2025-11-25': [
    'server-initialize',
    'ping',
    'tools-list',
    'tools-call-simple-text',
    'tools-call-image',
    'tools-call-error',
  ],
}

/** Runs the suite; returns how many scenarios it printed as passed, or the words that it ended with. */
function run(claim: string, words: readonly string[]): boolean {
  const { status, stdout, stderr } = spawnSync(process.execPath, [suite, ...words, '-o', results], {
    encoding: 'utf8',
    maxBuffer: 2 ** 28,
  })
  const passed = stdout.match(/^✓/gm)?.length
  console.log(
    `${status === 0 ? 'passed' : 'FAILED'}  ${claim}${passed === undefined ? '' : ` (${passed} scenarios)`}`,
  )
  if (status !== 0 || options.verbose) console.log(`${stdout}${stderr}`)
  return status === 0
}

const client = ['client', '--command', `"${process.execPath}" --no-warnings "${program('mcp-client')}"`]
const verdicts: boolean[] = []
try {
  if (options.scenario !== undefined) {
    verdicts.push(run(options.scenario, [...client, '--scenario', options.scenario]))
  } else {
    verdicts.push(run(`client, required by ${newest}`, [...client, '--requirements', newest]))
    verdicts.push(run('client, core suite', [...client, '--suite', 'core']))
    verdicts.push(...(await serverVerdicts()))
  }
} finally {
  rmSync(results, { recursive: true })
}
process.exitCode = verdicts.every(Boolean) ? 0 : 1

async function serverVerdicts(): Promise<readonly boolean[]> {
  const server = spawn(process.execPath, ['--no-warnings', program('mcp-server')], {
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  const [url] = (await once(server.stdout, 'data')) as [Buffer]
  const scenarios = Object.entries(serverScenarios).flatMap(([revision, names]) =>
    names.map((name) => [revision, name] as const),
  )
  const found = scenarios.map(([revision, name]) => {
    const words = ['server', '--url', String(url).trim(), '--scenario', name, '--spec-version', revision]
    return run(`server, ${name} of ${revision}`, words)
  })
  server.stdin.end()
  await once(server, 'exit')
  return found
}
