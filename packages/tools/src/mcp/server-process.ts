import { type ChildProcess, spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import type { Transport } from '@modelcontextprotocol/client'
import { endMarked, markVariable, type ProcessGuard, type Timers } from '../host.ts'
import type { client } from './client-library.ts'
import { cleanText } from './secrets.ts'

/** A transport over the standard input and output of a process. `close` resolves when all of that is gone. */
export interface StdioTransport extends Transport {
  readonly process: Pick<ServerProcess, 'stderrTail' | 'exit'>
}

/**
 * Makes a transport; the client that connects through it starts the process. A message of more than `maxMessageBytes` ends the
 * process.
 */
export function createStdioTransport(
  command: ServerCommand & { readonly maxMessageBytes: number },
  sdk: Pick<typeof client, 'ReadBuffer' | 'serializeMessage'>,
  timers: Timers,
  guard: ProcessGuard,
): StdioTransport {
  const messages = new sdk.ReadBuffer({ maxBufferSize: command.maxMessageBytes })
  let reading: Promise<void> = Promise.resolve()
  /** Why the process was ended. */
  let whyKilled: string | undefined

  const report = (error: unknown): void => transport.onerror?.(error as Error)
  /** Hands the messages on, one after the other: progress must be heard before the answer that comes with it. */
  const deliver = async (): Promise<void> => {
    for (;;) {
      try {
        const message = messages.readMessage()
        if (message === null) return
        transport.onmessage?.(message)
      } catch (error) {
        // A line that holds no message: servers print such things. The next line may hold one.
        report(error)
      }
      // The client library hears a notification one microtask later.
      await Promise.resolve()
    }
  }
  const end = (why: string, error: unknown): void => {
    whyKilled = why
    report(error)
    server.kill()
  }
  let beginning: Buffer | undefined = Buffer.alloc(0)
  const onOutput = (chunk: Buffer): void => {
    let bytes = chunk
    if (beginning !== undefined) {
      bytes = Buffer.concat([beginning, chunk])
      beginning = bytes.length < utf8Mark.length ? bytes : undefined
      if (utf16Marks.some((mark) => bytes.subarray(0, mark.length).equals(mark))) {
        const why = 'its output is UTF-16, and messages are UTF-8: have it write UTF-8'
        return end(why, new Error(why))
      }
      // No message is as short as the mark of an encoding; with that, the first one would be no JSON.
      if (beginning !== undefined) return
      if (bytes.subarray(0, utf8Mark.length).equals(utf8Mark)) bytes = bytes.subarray(utf8Mark.length)
    }
    try {
      messages.append(bytes)
      reading = reading.then(deliver)
    } catch (error) {
      end(`a message of it was longer than ${command.maxMessageBytes} bytes`, error)
    }
  }
  const onGone = (): void => void reading.then(() => transport.onclose?.())
  const server = startServerProcess(command, { onOutput, onGone, onError: report }, timers, guard)
  const transport: StdioTransport = {
    process: { stderrTail: server.stderrTail, exit: () => whyKilled ?? server.exit() },
    start: () => server.start(),
    send: (message) => server.write(sdk.serializeMessage(message)),
    close: () => server.close(),
  }
  return transport
}

const utf8Mark = Buffer.from([0xef, 0xbb, 0xbf])
const utf16Marks = [Buffer.from([0xff, 0xfe]), Buffer.from([0xfe, 0xff])]

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
interface ServerProcess {
  readonly stderrTail: ReturnType<typeof keepStderrTail>
  /** Resolves when the process runs. Rejects if it cannot be started. */
  start(): Promise<void>
  /** Resolves when the text is on its way. Rejects if the process has ended. */
  write(text: string): Promise<void>
  /** Ends the whole group at once. */
  kill(): void
  /** How the process ended without being closed, such as `exit code 1`; `undefined` while it runs. */
  exit(): string | undefined
  /** Ends the process: its input, then with a signal. Resolves when the whole group is gone. */
  close(): Promise<void>
}

/** Prepares a process; `start` starts it. */
export function startServerProcess(
  given: ServerCommand,
  events: ProcessEvents,
  timers: Timers,
  guard: ProcessGuard,
): ServerProcess {
  const isPosix = given.platform !== 'win32'
  const tail = keepStderrTail()
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
        const { command, args, env, cwd } = given
        const started = spawn(command, [...args], {
          stdio: ['pipe', 'pipe', 'pipe'],
          env: { ...env, [markVariable]: mark },
          cwd,
          detached: isPosix,
          // Commands of Windows such as npx are scripts, which only its shell can start.
          shell: !isPosix,
          windowsHide: true,
        })
        started.once('error', reject)
        started.once('spawn', () => {
          child = started
          gone = followed(started)
          resolve()
        })
        // Without a listener an error of any of them would end this process.
        for (const stream of started.stdio) stream?.on('error', events.onError)
        const [, output, errors] = started.stdio
        output.on('data', events.onOutput)
        errors.on('data', (chunk: Buffer) => tail.write(chunk))
      }),
    async write(text) {
      const input = child?.stdin
      if (!input?.writable) throw new Error('The process of the server has ended.')
      if (input.write(text)) return
      await new Promise<void>((resolve) => {
        const settle = (): void => {
          input.removeListener('drain', settle)
          input.removeListener('close', settle)
          resolve()
        }
        input.once('drain', settle)
        input.once('close', settle)
      })
    },
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

const maxBytes = 8_192
const maxCharacters = 1_500

/** Keeps the last 8 kB of what a server writes to its standard error, for the errors that are about it. */
export function keepStderrTail(): {
  write(chunk: Uint8Array): void
  /** The last lines, without characters that a terminal obeys; empty if nothing was written. */
  text(): string
} {
  let kept: Buffer = Buffer.alloc(0)
  let isCut = false
  return {
    write(chunk) {
      isCut ||= kept.length + chunk.length > maxBytes
      const all = Buffer.concat([kept, chunk.subarray(-maxBytes)])
      // A copy: a slice would keep the whole chunk in memory.
      kept = Buffer.from(all.subarray(-maxBytes))
    },
    text() {
      const lines = kept.toString('utf8').split('\n')
      // The first line may be the end of one.
      const text = (isCut ? lines.slice(1) : lines).join('\n').trim().slice(-maxCharacters)
      return cleanText(text, maxCharacters)
    },
  }
}
