// Holds the MCP client and server of `@tallystick/tools/mcp` to the public conformance suite of the protocol, whose version is
// pinned: all scored client scenarios of the newest revision, the core suite, and the server scenarios about tools.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { createRequire } from 'node:module'
import { availableParallelism, tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { text } from 'node:stream/consumers'
import { parseArgs } from 'node:util'

const { values: options } = parseArgs({
  options: { scenario: { type: 'string' }, verbose: { type: 'boolean', default: false } },
})
const require = createRequire(import.meta.url)
const suite = join(
  dirname(require.resolve('@modelcontextprotocol/conformance/package.json')),
  'dist/index.js',
)
const program = (name: string): string => join(import.meta.dirname, `${name}.ts`)
const results = mkdtempSync(join(tmpdir(), 'tallystick-conformance-'))
const newest = '2026-07-28'

/** Server scenarios that ask nothing but tools of a server. */
const serverScenarios: Readonly<Record<string, readonly string[]>> = {
  [newest]: [
    'tools-list',
    'tools-call-simple-text',
    'tools-call-image',
    'tools-call-audio',
    'tools-call-embedded-resource',
    'tools-call-mixed-content',
    'tools-call-error',
    'tools-call-with-progress',
    'json-schema-2020-12',
    'http-header-validation',
    'server-sse-multiple-streams',
    'sep-2164-resource-not-found',
    'dns-rebinding-protection',
  ],
  '2025-11-25': [
    'server-initialize',
    'ping',
    'tools-list',
    'tools-call-simple-text',
    'tools-call-image',
    'tools-call-audio',
    'tools-call-embedded-resource',
    'tools-call-mixed-content',
    'tools-call-error',
    'tools-call-with-progress',
    'json-schema-2020-12',
    'dns-rebinding-protection',
  ],
}

/** One run of the suite: what it claims, and the words of its command. */
type Claim = readonly [claim: string, words: readonly string[]]

/** What the suite starts, it starts often: Node compiles that once. */
const env = { ...process.env, NODE_COMPILE_CACHE: join(tmpdir(), 'tallystick-compile-cache') }

/** Runs the suite, prints what it found, and returns whether all of it holds. */
async function run([claim, words]: Claim): Promise<boolean> {
  // Only a hang takes so long: no scenario is judged by how busy the machine is.
  const child = spawn(process.execPath, [suite, ...words, '--timeout', '120000', '-o', results], {
    env,
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const [stdout, stderr, [status]] = await Promise.all([
    text(child.stdout),
    text(child.stderr),
    once(child, 'close') as Promise<[number | null]>,
  ])
  const passed = stdout.match(/^✓/gm)?.length
  console.log(
    `${status === 0 ? 'passed' : 'FAILED'}  ${claim}${passed === undefined ? '' : ` (${passed} scenarios)`}`,
  )
  if (status !== 0 || options.verbose) console.log(`${stdout}${stderr}`)
  return status === 0
}

/** Runs some at a time, the long ones first. */
async function runAll(claims: readonly Claim[]): Promise<boolean> {
  const left = [...claims]
  const verdicts: boolean[] = []
  const work = async (): Promise<void> => {
    for (let next = left.shift(); next !== undefined; next = left.shift()) verdicts.push(await run(next))
  }
  await Promise.all(Array.from({ length: Math.max(2, availableParallelism()) }, work))
  return verdicts.every(Boolean)
}

const client = ['client', '--command', `"${process.execPath}" --no-warnings "${program('mcp-client')}"`]
const clientClaims: readonly Claim[] = [
  [`client, required by ${newest}`, [...client, '--requirements', newest]],
  ['client, core suite', [...client, '--suite', 'core']],
]

function serverClaims(url: string): readonly Claim[] {
  return Object.entries(serverScenarios).flatMap(([revision, names]) =>
    names.map((name): Claim => {
      const words = ['server', '--url', url, '--scenario', name, '--spec-version', revision]
      return [`server, ${name} of ${revision}`, words]
    }),
  )
}

async function judged(): Promise<boolean> {
  if (options.scenario !== undefined) {
    return run([options.scenario, [...client, '--scenario', options.scenario]])
  }
  const server = spawn(process.execPath, ['--no-warnings', program('mcp-server')], {
    env,
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  const ended = once(server, 'exit')
  const [url] = (await once(server.stdout, 'data')) as [Buffer]
  const holds = await runAll([...clientClaims, ...serverClaims(String(url).trim())])
  server.stdin.end()
  await ended
  return holds
}

try {
  process.exitCode = (await judged()) ? 0 : 1
} finally {
  rmSync(results, { recursive: true })
}
