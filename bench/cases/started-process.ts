import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { text as textOf } from 'node:stream/consumers'
import type { Readable } from 'node:stream'

const bench = join(import.meta.dirname, '..')
const resolve = createRequire(import.meta.url).resolve

/** The file that runs the command `tallystick`. */
export function cliPath(): string {
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

type Ended = Report & { readonly wallMs: number; readonly output: string }

/** Runs Node with these parameters to its end. Rejects where it fails. */
export async function start(parameters: readonly string[]): Promise<Ended> {
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
