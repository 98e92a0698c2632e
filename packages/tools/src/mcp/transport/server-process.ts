import { type ChildProcess, spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import type { Writable } from 'node:stream'
import type { Timers } from '../../built-in/timers.ts'
import { endMarked, markVariable } from '../../execution/left-group.ts'
import type { ProcessGuard } from '../../execution/process-guard.ts'
import { type StderrTail, stderrTail } from './stderr-tail.ts'

/** A server to start, and what its process is given. */
export interface ServerCommand {
  readonly command: string
  readonly args: readonly string[]
  readonly env: Readonly<Record<string, string>>
  readonly cwd?: string | undefined
  /** Of this machine: groups of processes are ended in another way on Windows. */
  readonly platform: NodeJS.Platform
}

/** Milliseconds that a process has to end, first after its input has ended, then after it was asked to. */
const graceMs = 1_000

/** Milliseconds after a process is gone in which its output is still read, where another process keeps it open. */
const drainMs = 500

/** What a process reports. */
export interface ProcessEvents {
  readonly onOutput: (chunk: Buffer) => void
  readonly onError: (error: Error) => void
  /** All of it has ended, and its output is read. */
  readonly onGone: () => void
}

/**
 * The process of a server, in a group of its own, so that whatever it started ends with it. What has left the group is known by
 * its environment, on Linux.
 */
export interface ServerProcess {
  /** What it wrote to its standard error. */
  readonly stderrTail: StderrTail
  /** Resolves when the process runs. Rejects where it cannot be started. */
  start(): Promise<void>
  /** Resolves when the text is on its way. Rejects where the process has ended. */
  write(text: string): Promise<void>
  /** Ends the whole group at once. */
  kill(): void
  /** How the process ended without being closed, such as `exit code 1`; `undefined` while it runs. */
  exit(): string | undefined
  /** Ends the process: its input, then with a signal. Resolves when the whole group is gone. */
  close(): Promise<void>
}

/** Prepares a process; `start` starts it. */
export function serverProcess(
  given: ServerCommand,
  events: ProcessEvents,
  timers: Timers,
  guard: ProcessGuard,
): ServerProcess {
  const isPosix = given.platform !== 'win32'
  const tail = stderrTail()
  const mark = randomUUID()
  let child: ChildProcess | undefined
  let exit: string | undefined
  let isClosing = false
  let gone: Promise<void> = Promise.resolve()

  const signalGroup = (signal: NodeJS.Signals): void => {
    if (child?.pid === undefined) return
    try {
      if (isPosix) process.kill(-child.pid, signal)
      else child.kill(signal)
    } catch {
      // The group is gone.
    }
  }
  /** Follows a process that runs to its end: that of its group, and of its output. */
  const followed = (started: ChildProcess): Promise<void> =>
    new Promise((resolve) => {
      // One that has started has a number.
      const pid = Number(started.pid)
      guard.add(pid, mark)
      started.once('exit', (code, signal) => {
        signalGroup('SIGKILL')
        endMarked(mark)
        guard.remove(pid)
        if (!isClosing) exit = signal === null ? `exit code ${code}` : `signal ${signal}`
        const end = (): void => {
          cancelDrain()
          started.removeListener('close', end)
          for (const stream of started.stdio) stream?.destroy()
          child = undefined
          resolve()
          events.onGone()
        }
        const cancelDrain = timers.schedule(drainMs, end)
        started.once('close', end)
      })
    })

  return {
    stderrTail: tail,
    exit: () => exit,
    kill: () => signalGroup('SIGKILL'),
    start: () =>
      new Promise((resolve, reject) => {
        const started = spawned(given, mark)
        const [, output, errors] = started.stdio
        started.once('error', reject)
        started.once('spawn', () => {
          child = started
          gone = followed(started)
          resolve()
        })
        // Without a listener an error of any of them would end this process.
        for (const stream of started.stdio) stream?.on('error', events.onError)
        output?.on('data', events.onOutput)
        errors?.on('data', (chunk: Buffer) => tail.write(chunk))
      }),
    write: (text) => written(text, child?.stdin),
    async close() {
      isClosing = true
      if (child === undefined) return await gone
      child.stdin?.end()
      let cancel = timers.schedule(graceMs, () => {
        signalGroup('SIGTERM')
        cancel = timers.schedule(graceMs, () => signalGroup('SIGKILL'))
      })
      await gone
      cancel()
    },
  }
}

function spawned({ command, args, env, cwd, platform }: ServerCommand, mark: string): ChildProcess {
  const isPosix = platform !== 'win32'
  return spawn(command, [...args], {
    stdio: ['pipe', 'pipe', 'pipe'],
    env: { ...env, [markVariable]: mark },
    cwd,
    detached: isPosix,
    // Commands of Windows such as npx are scripts, which only its shell can start.
    shell: !isPosix,
    windowsHide: true,
  })
}

/** Resolves when the text is on its way, as far as the process takes it. */
function written(text: string, input: Writable | null | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    if (!input?.writable) return reject(new Error('The process of the server has ended.'))
    if (input.write(text)) return resolve()
    const settle = (): void => {
      input.removeListener('drain', settle)
      input.removeListener('close', settle)
      resolve()
    }
    input.once('drain', settle)
    input.once('close', settle)
  })
}
