import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { PassThrough } from 'node:stream'
import { text } from 'node:stream/consumers'
import { runCommandLine } from '@tallystick/cli'

const root = join(import.meta.dirname, '..', '..', '..')

/** How a child process ended. */
export interface Ending {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
  readonly stdout: string
  readonly stderr: string
}

export interface ProgramOptions {
  /** Set beside the test's own environment; without a key, so that no test asks a vendor. */
  readonly environment?: Readonly<Record<string, string>>
  /** Modules that are loaded before the program. */
  readonly preload?: readonly string[]
  /** Sends SIGINT, as Ctrl-C does, as soon as stdout holds this. */
  readonly interruptAt?: string
}

/** Runs a program of this repository to its end, in a process of its own, with stdin closed. */
function runProgram(
  program: string,
  words: readonly string[],
  options: ProgramOptions = {},
): Promise<Ending> {
  const { preload = [], environment = {}, interruptAt } = options
  const flags = preload.flatMap((module) => ['--import', module])
  const { ANTHROPIC_API_KEY: _key, NO_COLOR: _noColor, FORCE_COLOR: _color, ...inherited } = process.env
  const child = spawn(process.execPath, [...flags, join(root, program), ...words], {
    cwd: root,
    env: { ...inherited, ...environment },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const [stdout, stderr] = [collect(child.stdout), collect(child.stderr)]
  if (interruptAt !== undefined) {
    child.stdout.on('data', function interrupt() {
      if (!stdout().includes(interruptAt)) return
      child.stdout.off('data', interrupt)
      child.kill('SIGINT')
    })
  }
  return new Promise((resolve, reject) => {
    child.once('error', reject)
    child.once('close', (code, signal) => resolve({ code, signal, stdout: stdout(), stderr: stderr() }))
  })
}

/** The demo, as `pnpm demo` runs it. */
export function runDemo(words: readonly string[], options?: ProgramOptions): Promise<Ending> {
  return runProgram(join('examples', 'demo', 'src', 'main.ts'), words, options)
}

/** The demo while it serves its page. */
export interface ServingDemo extends AsyncDisposable {
  /** The address that it prints first. */
  readonly firstLine: Promise<string>
  /** Stops it as Ctrl-C does. */
  stop(): Promise<Ending>
}

/** Starts the demo; it ends with the test at the latest. */
export async function startDemo(words: readonly string[]): Promise<ServingDemo> {
  const { ANTHROPIC_API_KEY: _key, FORCE_COLOR: _color, ...environment } = process.env
  const child = spawn(process.execPath, [join(root, 'examples', 'demo', 'src', 'main.ts'), ...words], {
    cwd: root,
    env: environment,
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const [stdout, stderr] = [collect(child.stdout), collect(child.stderr)]
  const closed = once(child, 'close') as Promise<[number | null, NodeJS.Signals | null]>
  const firstLine = new Promise<string>((resolve, reject) => {
    child.stdout.on('data', () => void (stdout().includes('\n') && resolve(stdout().split('\n')[0] ?? '')))
    child.once('close', () => reject(new Error(`The demo has ended: ${stderr()}`)))
  })
  firstLine.catch(() => {})
  return {
    firstLine,
    async stop() {
      child.kill('SIGINT')
      const [code, signal] = await closed
      return { code, signal, stdout: stdout(), stderr: stderr() }
    },
    async [Symbol.asyncDispose]() {
      child.kill('SIGKILL')
      await closed
    },
  }
}

/** The command line, as `pnpm tallystick` runs it. */
export function runTallystick(words: readonly string[], options?: ProgramOptions): Promise<Ending> {
  return runProgram(join('packages', 'cli', 'src', 'main.ts'), words, options)
}

/** The command line in this process, without a terminal, and with the key of this process. */
export async function runTallystickHere(words: readonly string[]): Promise<Ending> {
  const [stdin, stdout, stderr] = [new PassThrough(), new PassThrough(), new PassThrough()]
  stdin.end()
  // Read while it is written: a command waits for a reader that is late.
  const output = Promise.all([text(stdout), text(stderr)])
  const code = await runCommandLine(words, { env: {}, cwd: () => root, stdin, stdout, stderr })
  stdout.end()
  stderr.end()
  const [printed, said] = await output
  return { code, signal: null, stdout: printed, stderr: said }
}

function collect(stream: NodeJS.ReadableStream): () => string {
  const chunks: Buffer[] = []
  stream.on('data', (chunk: Buffer) => chunks.push(chunk))
  return () => Buffer.concat(chunks).toString()
}
