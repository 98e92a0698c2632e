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
  /** Resolves when what it has printed on stdout is like this. */
  prints(isLikeThis: (stdout: string) => boolean): Promise<void>
  /** Sends its process a signal. */
  kill(signal: NodeJS.Signals): void
  readonly ending: Promise<Ending>
}

/** Starts the command in a process of its own, without a terminal. */
export function startTallystick(...words: readonly string[]): AtWork {
  return startTallystickFrom(process.cwd(), ...words)
}

/** Starts the command in a process of its own, in this folder, without a terminal. */
export function startTallystickFrom(folder: string, ...words: readonly string[]): AtWork {
  const { FORCE_COLOR: _color, npm_lifecycle_event: _script, ...environment } = process.env
  const child = spawn(process.execPath, [main, ...words], {
    cwd: folder,
    env: environment,
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const output = Promise.all([text(child.stdout), text(child.stderr)])
  const closed = new Promise<number | null>((resolve, reject) => {
    child.once('error', reject)
    child.once('close', resolve)
  })
  let [said, printed] = ['', '']
  child.stderr.on('data', (chunk: Buffer) => (said += chunk.toString()))
  child.stdout.on('data', (chunk: Buffer) => (printed += chunk.toString()))
  return {
    says: (part) =>
      new Promise((resolve, reject) => {
        const look = (): void => void (said.includes(part) && resolve())
        child.stderr.on('data', look)
        child.once('close', () => reject(new Error(`it never said ${part}, but ${said}`)))
        look()
      }),
    prints: (isLikeThis) =>
      new Promise((resolve, reject) => {
        const look = (): void => void (isLikeThis(printed) && resolve())
        child.stdout.on('data', look)
        child.once('close', () => reject(new Error(`it printed ${printed}, and said ${said}`)))
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
  return runHere(words)
}

/** Runs the command in this process, where it is this time, in milliseconds since 1970 UTC. */
export function tallystickAt(time: number, ...words: readonly string[]): Promise<Ending> {
  return runHere(words, { now: () => time })
}

/** Runs the command in this process, where a person reads stdout on a terminal of so many columns. */
export function tallystickRead(columns: number, ...words: readonly string[]): Promise<Ending> {
  return runHere(words, { terminals: ['stdout'], columns })
}

/** Runs the command in this process, in this folder. */
export function tallystickFrom(folder: string, ...words: readonly string[]): Promise<Ending> {
  return runHere(words, { cwd: () => folder })
}

/** Runs the command in this process, with this on its standard input. */
export function tallystickFed(stdin: string, ...words: readonly string[]): Promise<Ending> {
  return runHere(words, { stdin })
}

/** Runs the command in this process, with stderr a terminal; each thing that is written to it takes a second. */
export function tallystickOnTerminal(...words: readonly string[]): Promise<Ending> {
  let time = 0
  return runHere(words, { now: () => (time += 1000), terminals: ['stderr'] })
}

/** A person at the terminal. */
interface Typist {
  /** What they type before the command has asked anything. */
  readonly ahead?: string
  /** What they answer, one after the other, each when it is asked for; Ctrl-D leaves. */
  readonly answers?: readonly string[]
  readonly rows?: number
}

/** Runs the command in this process, with a person at the terminal. */
export function tallystickAttended(typist: Typist, ...words: readonly string[]): Promise<Ending> {
  return runHere(words, { typist, terminals: ['stdin', 'stdout', 'stderr'] })
}

interface Surroundings extends Partial<Pick<CommandHost, 'now' | 'cwd'>> {
  readonly stdin?: string
  readonly typist?: Typist
  readonly terminals?: readonly ('stdin' | 'stdout' | 'stderr')[]
  /** Of the terminals. */
  readonly columns?: number
}

async function runHere(
  words: readonly string[],
  { stdin = '', typist = {}, terminals = [], columns = 80, ...own }: Surroundings = {},
): Promise<Ending> {
  const on = <Stream>(stream: Stream, name: (typeof terminals)[number]): Stream & { isTTY: boolean } =>
    Object.assign(stream as Stream & object, { isTTY: terminals.includes(name) })
  const [stdout, stderr] = [on(new PassThrough(), 'stdout'), on(new PassThrough(), 'stderr')]
  const typing = new PassThrough()
  typing.write(stdin + (typist.ahead ?? ''))
  if (terminals.length === 0) typing.end()
  answer(typing, stderr, typist.answers ?? [])
  const screen = { columns, rows: typist.rows ?? 24 }
  const host = {
    env: {},
    cwd: () => tmpdir(),
    stdin: on(typing, 'stdin'),
    stdout: Object.assign(stdout, screen),
    stderr: Object.assign(stderr, screen),
  }
  // Read while it is written: a command waits for a slow reader.
  const said = Promise.all([text(stdout), text(stderr)])
  const code = await runCommandLine(words, { ...host, ...own })
  stdout.end()
  stderr.end()
  const [out, errors] = await said
  return { code, stdout: out, stderr: errors }
}

/** What every question ends with. */
const questionEnd = /\[l\]ater: |reads it: /g

/** Types an answer whenever the screen shows a question. */
function answer(typing: PassThrough, screen: PassThrough, answers: readonly string[]): void {
  let said = ''
  let answered = 0
  screen.on('data', (chunk: Buffer) => {
    said += chunk.toString()
    while (answered < [...said.matchAll(questionEnd)].length) typing.write(answers[answered++] ?? '')
  })
}

/** What the command printed as JSON. */
export function json(text: string): unknown {
  return JSON.parse(text)
}
