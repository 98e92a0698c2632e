import { type ChildProcess, spawn } from 'node:child_process'
import type { Json } from '@tallystick/core/vocabulary'
import { scheduleLimit, type Timers } from '../timers.ts'
import { endHolders, outputEndsOf } from '../../execution/left-group.ts'
import { processGuard } from '../../execution/process-guard.ts'
import { type KeptOutput, keptOutput } from './kept-output.ts'
import { outputProgress, type StreamName } from './output-progress.ts'

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
 * `graceMs`. Rejects where the program cannot be started.
 */
export async function runProgram(start: Start, bounds: Bounds, caller: Caller): Promise<Ended> {
  const { maxBytes, timers } = bounds
  const outputs = { stdout: keptOutput(maxBytes), stderr: keptOutput(maxBytes) }
  const { child, group } = await started(start)
  const progress = outputProgress(caller.progress, maxBytes, timers)
  const [input, ...ownStreams] = child.stdio
  const streams = (['stdout', 'stderr'] as const).map((name, index) =>
    collected(ownStreams[index], (chunk) => {
      outputs[name].write(chunk)
      progress.write(name, chunk)
    }),
  )
  const ends = outputEndsOf(group)
  const guard = processGuard()
  guard.add(group)
  const stop = stopper(group, bounds, caller.signal)
  input?.on('error', () => {})
  input?.end(start.stdin)
  const { exitCode, signal } = await exitOf(child)
  // What it started in its group ends with it, also what ignores the signal that asks.
  const stopped = stop.end()
  signalGroup(group, 'SIGKILL')
  await drained(streams, ends, timers)
  input?.destroy()
  progress.end()
  guard.remove(group)
  await guard.close()
  return { exitCode, signal, ...(stopped && { stopped }), outputs }
}

/** A program that runs, with the number of its group. */
interface Started {
  readonly child: ChildProcess
  readonly group: number
}

function started({ path, args, cwd, env, stdin }: Start): Promise<Started> {
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

function exitOf(
  child: ChildProcess,
): Promise<{ readonly exitCode: number | null; readonly signal: NodeJS.Signals | null }> {
  return new Promise((resolve) => {
    child.once('exit', (exitCode, signal) => resolve({ exitCode, signal }))
  })
}

type Stream = ChildProcess['stdio'][number] | undefined

/** The end of one stream of output. */
interface Collected {
  readonly closed: Promise<unknown>
  /** Reads no more of it. */
  close(): void
}

function collected(stream: Stream, write: (chunk: Buffer) => void): Collected {
  stream?.on('data', write)
  stream?.on('error', () => {})
  const closed = new Promise((resolve) => (stream ? stream.once('close', resolve) : resolve(undefined)))
  return { closed, close: () => stream?.destroy() }
}

/** Resolves when the output is read to its end. What still holds it after a while has left the group, and is ended. */
async function drained(
  outputs: readonly Collected[],
  ends: ReadonlySet<string>,
  timers: Timers,
): Promise<void> {
  const closed = Promise.all(outputs.map((output) => output.closed))
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
  for (const output of outputs) output.close()
  await closed
}

/** Stops a group at an abort, or when its time is over. */
function stopper(
  group: number,
  { timeoutMs, graceMs, timers }: Bounds,
  signal: AbortSignal,
): { end(): Ended['stopped'] } {
  let stopped: Ended['stopped']
  let cancel = (): void => {}
  const stop = (why: NonNullable<Ended['stopped']>): void => {
    if (stopped !== undefined) return
    stopped = why
    cancel()
    signalGroup(group, 'SIGTERM')
    cancel = timers.schedule(graceMs, () => signalGroup(group, 'SIGKILL'))
  }
  const abort = (): void => stop('aborted')
  cancel = scheduleLimit(timers, timeoutMs, () => stop('timed_out'))
  signal.addEventListener('abort', abort)
  if (signal.aborted) abort()
  return {
    end() {
      cancel()
      signal.removeEventListener('abort', abort)
      return stopped
    },
  }
}

function signalGroup(group: number, signal: NodeJS.Signals): void {
  try {
    process.kill(-group, signal)
  } catch {
    // The group is gone.
  }
}
