import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { text as textOf } from 'node:stream/consumers'
import type { Readable } from 'node:stream'
import type { Case } from './case.ts'

const bench = join(import.meta.dirname, '..')
const resolve = createRequire(import.meta.url).resolve

/** What Node is asked to do, by the name of the subject. */
const commands: Readonly<Record<string, () => readonly string[]>> = {
  core: () => importing('@tallystick/core'),
  'core-sqlite-tools': () => importing('@tallystick/core', '@tallystick/ledger/sqlite', '@tallystick/tools'),
  'cli-version': () => [cliPath(), '--version'],
  'bare-node': () => importing(),
  ai: () => importing('ai'),
  'openai-agents': () => importing('@openai/agents'),
  mastra: () => importing('@mastra/core/agent'),
  langgraph: () => importing('@langchain/langgraph', '@langchain/core/tools'),
  pi: () => importing('@earendil-works/pi-agent-core'),
}

export const coldStart: Case = {
  name: 'cold-start',
  what: 'A process that loads a package and ends, and one that runs `tallystick --version`; bare-node loads nothing.',
  isComparison: true,
  unit: 'start',
  params: [{}],
  smokeParams: [{}],
  own: ['core', 'core-sqlite-tools', 'cli-version', 'bare-node'],
  peers: ['ai', 'openai-agents', 'mastra', 'langgraph', 'pi'],
  async measure({ subject, smoke }) {
    const command = commands[subject]
    if (command === undefined) throw new Error(`There is no start called ${subject}.`)
    const parameters = command()
    // Once before, so that the files are in the memory of the system.
    if (!smoke) await start(parameters)
    const { wallMs, output, ...report } = await start(parameters)
    if (subject === 'cli-version' && !/\d+\.\d+\.\d+/.test(output)) throw new Error(`It printed ${output}.`)
    return { units: 1, wallMs, ...report }
  },
}

function importing(...specifiers: readonly string[]): readonly string[] {
  return [
    '--input-type=module',
    '-e',
    specifiers.map((specifier) => `import ${JSON.stringify(specifier)}`).join('\n'),
  ]
}

function cliPath(): string {
  const manifest = resolve('@tallystick/cli/package.json')
  const { bin } = JSON.parse(readFileSync(manifest, 'utf8')) as { bin: { tallystick: string } }
  return join(dirname(manifest), bin.tallystick)
}

/** What a process says of itself when it ends. */
interface Report {
  readonly cpuMs: number
  readonly peakMiB: number
}

const reporting = `data:text/javascript,${encodeURIComponent(`
  import { writeSync } from 'node:fs'
  process.on('exit', () => {
    const { user, system } = process.cpuUsage()
    const peakMiB = process.resourceUsage().maxRSS / 1024
    writeSync(3, JSON.stringify({ cpuMs: (user + system) / 1000, peakMiB }))
  })
`)}`

async function start(parameters: readonly string[]): Promise<Report & { wallMs: number; output: string }> {
  const begun = performance.now()
  const child = spawn(process.execPath, ['--import', reporting, ...parameters], {
    cwd: bench,
    stdio: ['ignore', 'pipe', 'pipe', 'pipe'],
  })
  const [output, errors, report, [status]] = await Promise.all([
    textOf(child.stdout as Readable),
    textOf(child.stderr as Readable),
    textOf(child.stdio[3] as Readable),
    once(child, 'exit') as Promise<[number | null]>,
  ])
  const wallMs = performance.now() - begun
  if (status !== 0) throw new Error(`The process ended with ${status}: ${errors}`)
  return { wallMs, output, ...(JSON.parse(report) as Report) }
}
