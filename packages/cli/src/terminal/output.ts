import { once } from 'node:events'
import type { Pager } from './pager.ts'
import { type Paint, createPaint, toTerminalText } from './paint.ts'

/** A stream of a process that text is read from. */
type InputStream = NodeJS.ReadableStream & {
  readonly isTTY?: boolean
  readonly readableEnded?: boolean
  readonly setRawMode?: (isRaw: boolean) => unknown
}

/**
 * Asks a person at the terminal for a line. What was typed before the question stood there is forgotten. Resolves with
 * `undefined` when they leave by Ctrl-C or Ctrl-D.
 */
export async function askLine(
  input: InputStream,
  output: NodeJS.WritableStream,
  question: string,
): Promise<string | undefined> {
  // Few programs ask, and all begin sooner without it.
  const readline = import('node:readline')
  await forgetTyped(input)
  if (input.readableEnded === true) return undefined
  const { createInterface } = await readline
  return await new Promise((resolve) => {
    const terminal = createInterface({ input, output, terminal: true, historySize: 0 })
    terminal.once('SIGINT', () => terminal.close())
    terminal.once('close', () => resolve(undefined))
    // Further lines of the same paste are dropped: they were typed before the next question.
    terminal.once('line', (line) => {
      resolve(line.trim())
      terminal.close()
    })
    terminal.setPrompt(question)
    terminal.prompt()
  })
}

/** After so many turns of the event loop without input, the buffers of the system and the stream are empty. */
const quietTurns = 3

async function forgetTyped(input: InputStream): Promise<void> {
  // A line that was begun is held by the system until it is ended, unless the terminal is raw.
  input.setRawMode?.(true)
  let quiet = 0
  const forget = (): void => void (quiet = 0)
  input.on('data', forget)
  input.resume()
  while (quiet++ < quietTurns) await new Promise((resolve) => setImmediate(resolve))
  input.off('data', forget)
  input.pause()
  if (input.readableEnded === true) input.setRawMode?.(false)
}

/** A stream of a process that text is written to. */
export type OutputStream = NodeJS.WritableStream & {
  readonly isTTY?: boolean
  readonly columns?: number
  readonly rows?: number
}

/** The streams of a process. */
export interface HostStreams {
  readonly env: NodeJS.ProcessEnv
  readonly stdin: InputStream
  readonly stdout: OutputStream
  readonly stderr: OutputStream
}

/** Returns true if a value has the streams of a process, and its environment. */
export function hasStreams(value: unknown): boolean {
  const { env, stdin, stdout, stderr } = Object(value) as Partial<HostStreams>
  const outputs = [stdout, stderr].every((stream) => typeof stream?.write === 'function')
  return outputs && [env, stdin].every((each) => typeof each === 'object' && each !== null)
}

/** A stream of the process, as the rest of this package may write to it. */
export interface Output {
  readonly isTerminal: boolean
  /** Columns and rows of the terminal, as they are now. */
  readonly size: () => TerminalSize
  readonly paint: Paint
  /** Writes text, with what a terminal would obey or hide made visible. */
  readonly write: (text: string) => void
  /** Does the same, and waits while the reader is slower. */
  readonly print: (text: string) => Promise<void>
  /** Writes text as it is where the stream is not a terminal: data, for a file or a program. */
  readonly printData: (text: string) => Promise<void>
  /** Replaces the line that it wrote before; an empty text removes it. */
  readonly rewriteLine: (text: string) => void
  /** Opens a pager on the terminal. Returns `undefined` if stdout is not a terminal, or if no pager is wanted or found. */
  readonly openPager: () => Promise<Pager | undefined>
  /** Takes back what was written to the terminal and still holds: styles, hidden text, an unfinished sequence. */
  readonly reset: () => void
  /** Asks for a line on stdin, as `askLine` does. */
  readonly ask: (question: string) => Promise<string | undefined>
}

/** Columns and rows of a terminal. */
export interface TerminalSize {
  readonly columns: number
  readonly rows: number
}

/**
 * In order: ends an unfinished control string, resets modes and margins, styles and character sets, wraps at the last
 * column, shows the cursor, and begins a line.
 */
const resetSequence = '\u001B\\\u001B[!p\u001B[0m\u001B(B\u000F\u001B[?7h\u001B[?25h\r\n'

/**
 * Returns stdout and stderr of a process. This is the one place where this package writes to them; a rule of the linter
 * keeps everything else from them. What is written may hold text of models, tools, stores and files, so nothing of it
 * reaches a terminal raw.
 */
export function createOutputs(host: HostStreams): { readonly out: Output; readonly errors: Output } {
  return { out: createOutput(host.stdout, host), errors: createOutput(host.stderr, host) }
}

function createOutput(stream: OutputStream, { stdin, env }: HostStreams): Output {
  const isTerminal = stream.isTTY === true
  const write = (text: string): void => void stream.write(text)
  const print = async (text: string): Promise<void> => {
    if (!stream.write(text)) await once(stream, 'drain')
  }
  return {
    isTerminal,
    size: () => ({ columns: stream.columns ?? 80, rows: stream.rows ?? 24 }),
    paint: createPaint(stream, env),
    write: (text) => write(toTerminalText(text)),
    print: (text) => print(toTerminalText(text)),
    printData: (text) => print(isTerminal ? toTerminalText(text) : text),
    rewriteLine: (text) => write(`\r\u001B[K${toTerminalText(text)}`),
    openPager: async () => {
      if (!isTerminal || !('fd' in stream)) return undefined
      // Node loads a quarter of its network to start a program.
      const { openPager } = await import('./pager.ts')
      return openPager(env, toTerminalText)
    },
    reset: () => write(resetSequence),
    ask: (question) => askLine(stdin, stream, toTerminalText(question)),
  }
}
