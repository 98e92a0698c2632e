import { type ChildProcess, spawn } from 'node:child_process'
import type { Readable } from 'node:stream'
import { StringDecoder } from 'node:string_decoder'
import type { Json } from '@tallystick/core/vocabulary'
import { toVisibleText } from '../define/text.ts'
import { endHolders, readOutputEnds, startProcessGuard, scheduleLimit, type Timers } from '../host.ts'

/** One start of a program. */
export interface Start {
  /** Its absolute path. */
  readonly path: string
  readonly args: readonly string[]
  readonly cwd: string
  readonly env: Readonly<Record<string, string>>
  readonly stdin?: string | undefined
}

/** The bounds of a start. */
export interface Bounds {
  readonly maxBytes: number
  readonly timeoutMs: number
  readonly graceMs: number
  readonly timers: Timers
}

/** Who waits for a program. */
export interface Caller {
  readonly signal: AbortSignal
  readonly progress: (data: Json) => void
}

/** How a program ended; `stopped` says why, where the call stopped it. */
export interface Ended {
  readonly exitCode: number | null
  readonly signal: NodeJS.Signals | null
  readonly stopped?: 'aborted' | 'timed_out'
  readonly outputs: Readonly<Record<StreamName, KeptOutput>>
}

/** Milliseconds after a program is gone in which its output may still be held open elsewhere. */
const drainMs = 500

/**
 * Runs a program in a process group of its own, without a shell. Resolves when all of the group was ended and its output
 * is read, never before. At the abort of the signal, and when its time is over, the group is asked to end, and is ended after
 * `graceMs`. Rejects if the program cannot be started.
 */
export async function runProgram(start: Start, bounds: Bounds, caller: Caller): Promise<Ended> {
  const { maxBytes, timers } = bounds
  const outputs = { stdout: keepOutput(maxBytes), stderr: keepOutput(maxBytes) }
  const { child, group } = await startProgram(start)
  const progress = reportOutput(caller.progress, maxBytes, timers)
  const { stdin: input } = child
  const streams = (['stdout', 'stderr'] as const).flatMap((name) => {
    const stream = child[name]
    stream?.on('data', (chunk: Buffer) => {
      outputs[name].write(chunk)
      progress.write(name, chunk)
    })
    stream?.on('error', () => {})
    return stream ?? []
  })
  const ends = readOutputEnds(group)
  const guard = startProcessGuard()
  guard.add(group)
  let stopped: Ended['stopped']
  let cancelTimer = (): void => {}
  const stop = (why: NonNullable<Ended['stopped']>): void => {
    if (stopped !== undefined) return
    stopped = why
    cancelTimer()
    sendSignal(group, 'SIGTERM')
    cancelTimer = timers.schedule(bounds.graceMs, () => sendSignal(group, 'SIGKILL'))
  }
  const abort = (): void => stop('aborted')
  cancelTimer = scheduleLimit(timers, bounds.timeoutMs, () => stop('timed_out'))
  caller.signal.addEventListener('abort', abort)
  if (caller.signal.aborted) abort()
  input?.on('error', () => {})
  input?.end(start.stdin)
  const [exitCode, signal] = await new Promise<[number | null, NodeJS.Signals | null]>((resolve) => {
    child.once('exit', (...how) => resolve(how))
  })
  cancelTimer()
  caller.signal.removeEventListener('abort', abort)
  // All processes of its group end with it, also those that ignore SIGTERM.
  sendSignal(group, 'SIGKILL')
  await drainOutput(streams, ends, timers)
  input?.destroy()
  progress.end()
  guard.remove(group)
  await guard.close()
  return { exitCode, signal, ...(stopped && { stopped }), outputs }
}

function startProgram({
  path,
  args,
  cwd,
  env,
  stdin,
}: Start): Promise<{ readonly child: ChildProcess; readonly group: number }> {
  return new Promise((resolve, reject) => {
    const child = spawn(path, [...args], {
      cwd,
      // Node hands this variable of its own on, unless it is named.
      env: { NODE_V8_COVERAGE: undefined, ...env },
      stdio: [stdin === undefined ? 'ignore' : 'pipe', 'pipe', 'pipe'],
      detached: true,
    })
    child.once('error', reject)
    if (child.pid !== undefined) resolve({ child, group: child.pid })
  })
}

/** Resolves when the output is read to its end. What still holds it after a while has left the group, and is ended. */
async function drainOutput(
  outputs: readonly Readable[],
  ends: ReadonlySet<string>,
  timers: Timers,
): Promise<void> {
  const closed = Promise.all(
    outputs.map(
      (output) => new Promise<void>((resolve) => (output.closed ? resolve() : output.once('close', resolve))),
    ),
  )
  const wait = async (): Promise<boolean> => {
    let cancel = (): void => {}
    const late = new Promise<boolean>((resolve) => (cancel = timers.schedule(drainMs, () => resolve(true))))
    const isLate = await Promise.race([closed.then(() => false), late])
    cancel()
    return isLate
  }
  if (!(await wait())) return
  endHolders(ends)
  if (!(await wait())) return
  for (const output of outputs) output.destroy()
  await closed
}

function sendSignal(group: number, signal: NodeJS.Signals): void {
  try {
    process.kill(-group, signal)
  } catch {
    // The group is gone.
  }
}

/** The beginning and the end of what a program writes to one stream. */
interface KeptOutput {
  write(chunk: Uint8Array): void
  /** The text, with a mark where the middle is left out; of `maxBytes` at most where that is less than what is kept. */
  text(maxBytes?: number): string
  /** Bytes that were written, and bytes of them that the text leaves out. */
  readonly written: number
  readonly omitted: number
}

/** Keeps `maxBytes` of a stream: one half from its beginning, the other from its end. */
export function keepOutput(maxBytes: number): KeptOutput {
  const headBytes = Math.ceil(maxBytes / 2)
  const tailBytes = maxBytes - headBytes
  const head: Uint8Array[] = []
  let [headSize, written] = [0, 0]
  let tail: Uint8Array[] = []
  let tailSize = 0
  /** Many small pieces are put together now and then: a slice would keep all of its chunk. */
  const compact = (): void => {
    const whole = Buffer.concat(tail)
    tail = [Buffer.from(whole.subarray(Math.max(0, whole.length - tailBytes)))]
    tailSize = tail[0]?.length ?? 0
  }
  return {
    get written() {
      return written
    },
    get omitted() {
      return Math.max(0, written - headSize - Math.min(tailSize, tailBytes))
    },
    write(chunk) {
      written += chunk.length
      const first = chunk.subarray(0, headBytes - headSize)
      if (first.length > 0) {
        head.push(Buffer.from(first))
        headSize += first.length
      }
      const rest = chunk.subarray(first.length)
      if (rest.length === 0) return
      tail.push(Buffer.from(rest))
      tailSize += rest.length
      if (tailSize > 2 * tailBytes + 65_536 || tail.length > 4_096) compact()
    },
    text(shownBytes = maxBytes) {
      compact()
      const [start, end] = [Buffer.concat(head), Buffer.concat(tail)]
      const omitted = written - start.length - end.length
      if (omitted === 0 && written <= shownBytes) return toVisibleText(Buffer.concat([start, end]).toString())
      const half = Math.ceil(Math.min(shownBytes, maxBytes) / 2)
      // If nothing was omitted, the two are one text, and its middle is left out.
      const all = omitted === 0 ? Buffer.concat([start, end]) : undefined
      const first = (all ?? start).subarray(0, half)
      const last = all
        ? all.subarray(Math.max(half, all.length - half))
        : end.subarray(Math.max(0, end.length - half))
      const [beginning, ending] = [cutWholeEnd(first), cutWholeStart(last)]
      const cut = written - beginning.length - ending.length
      return `${toVisibleText(beginning.toString())}\n… (${cut} bytes are left out) …\n${toVisibleText(ending.toString())}`
    },
  }
}

/** Without the bytes at the end that begin a character and do not end it. */
function cutWholeEnd(bytes: Buffer): Buffer {
  for (let back = 1; back <= bytes.length; back++) {
    const byte = Number(bytes.at(-back))
    if ((byte & 0xc0) === 0x80) continue
    const length = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : byte >= 0xc0 ? 2 : 1
    return length > back ? bytes.subarray(0, -back) : bytes
  }
  return bytes
}

/** Without the bytes at the start that end a character and do not begin it. */
function cutWholeStart(bytes: Buffer): Buffer {
  let start = 0
  while (start < 3 && (Number(bytes[start]) & 0xc0) === 0x80) start++
  return bytes.subarray(start)
}

const everyMs = 100

type StreamName = 'stdout' | 'stderr'

/** Reports what a program writes while it runs. */
export interface OutputProgress {
  write(stream: StreamName, chunk: Buffer): void
  /** Reports what is left, and sets no timer any more. */
  end(): void
}

/**
 * Reports `{ stream, text }`, ten times a second at most. After `maxBytes` it says once that it reports no more: a flood
 * must not fill the ledger.
 */
export function reportOutput(report: (data: Json) => void, maxBytes: number, timers: Timers): OutputProgress {
  const decoders = { stdout: new StringDecoder('utf8'), stderr: new StringDecoder('utf8') }
  let waiting: { readonly stream: StreamName; text: string }[] = []
  let [left, cancel, isOver] = [maxBytes, undefined as (() => void) | undefined, false]
  const flush = (): void => {
    cancel = undefined
    const reports = waiting
    waiting = []
    for (const { stream, text } of reports) {
      const visible = toVisibleText(text)
      if (visible !== '') report({ stream, text: visible })
    }
  }
  return {
    write(stream, chunk) {
      if (isOver) return
      const text = decoders[stream].write(chunk.subarray(0, left))
      left -= chunk.length
      const last = waiting.at(-1)
      if (last?.stream === stream) last.text += text
      else waiting.push({ stream, text })
      cancel ??= timers.schedule(everyMs, flush)
      if (left >= 0) return
      isOver = true
      cancel()
      flush()
      report({ note: `More than ${maxBytes} bytes were written: further output is not reported.` })
    },
    end() {
      cancel?.()
      if (!isOver) flush()
      isOver = true
    },
  }
}
