import { spawn } from 'node:child_process'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { PassThrough } from 'node:stream'
import { text } from 'node:stream/consumers'
import { runCommandLine, type CommandHost } from '@tallystick/cli'

const main = join(import.meta.dirname, '..', '..', 'src', 'main.ts')

/** How the command ended. */
export interface Ending {
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
}

/** A command that is at work. */
export interface AtWork {
  /** Resolves when it has said this on stderr. */
  says(part: string): Promise<void>
  /** Sends its process a signal. */
  kill(signal: NodeJS.Signals): void
  readonly ending: Promise<Ending>
}

/** Starts the command in a process of its own, without a terminal. */
export function startTallystick(...words: readonly string[]): AtWork {
  const { FORCE_COLOR: _color, npm_lifecycle_event: _script, ...environment } = process.env
  const child = spawn(process.execPath, [main, ...words], {
    env: environment,
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const output = Promise.all([text(child.stdout), text(child.stderr)])
  const closed = new Promise<number | null>((resolve, reject) => {
    child.once('error', reject)
    child.once('close', resolve)
  })
  let said = ''
  child.stderr.on('data', (chunk: Buffer) => (said += chunk.toString()))
  return {
    says: (part) =>
      new Promise((resolve, reject) => {
        const look = (): void => void (said.includes(part) && resolve())
        child.stderr.on('data', look)
        child.once('close', () => reject(new Error(`it never said ${part}, but ${said}`)))
        look()
      }),
    kill: (signal) => void child.kill(signal),
    ending: (async () => {
      const [[stdout, stderr], code] = await Promise.all([output, closed])
      return { code, stdout, stderr }
    })(),
  }
}

/** Runs the command in a process of its own, without a terminal. */
export function tallystick(...words: readonly string[]): Promise<Ending> {
  return startTallystick(...words).ending
}

/** Runs the command in this process, as `main.ts` does. */
export function tallystickHere(...words: readonly string[]): Promise<Ending> {
  return runHere(words, {})
}

/** Runs the command in this process, where it is this time, in milliseconds since 1970 UTC. */
export function tallystickAt(time: number, ...words: readonly string[]): Promise<Ending> {
  return runHere(words, { now: () => time })
}

/** Runs the command in this process, with stderr a terminal; each thing that is written to it takes a second. */
export function tallystickOnTerminal(...words: readonly string[]): Promise<Ending> {
  let time = 0
  return runHere(words, { now: () => (time += 1000) }, true)
}

async function runHere(
  words: readonly string[],
  own: Pick<CommandHost, 'now'>,
  isTerminal = false,
): Promise<Ending> {
  const [stdout, stderr] = [new PassThrough(), new PassThrough()]
  const host = {
    env: {},
    cwd: () => tmpdir(),
    stdin: {},
    stdout,
    stderr: Object.assign(stderr, { isTTY: isTerminal }),
  }
  const code = await runCommandLine(words, { ...host, ...own })
  stdout.end()
  stderr.end()
  return { code, stdout: await text(stdout), stderr: await text(stderr) }
}

/** What the command printed as JSON. */
export function json(text: string): unknown {
  return JSON.parse(text)
}
