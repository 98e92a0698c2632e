import type { client } from '../options/client-library.ts'
import type { Transport } from '@modelcontextprotocol/client'
import type { Timers } from '../../built-in/timers.ts'
import type { ProcessGuard } from '../../execution/process-guard.ts'
import { type ServerCommand, type ServerProcess, serverProcess } from './server-process.ts'

/** A server to start, and the bounds of what it says. */
export interface StdioCommand extends ServerCommand {
  /** Bytes of one message at most; a longer one ends the process. */
  readonly maxMessageBytes: number
}

/** What a transport over a process needs. */
export interface StdioParts {
  readonly sdk: Pick<typeof client, 'ReadBuffer' | 'serializeMessage'>
  readonly timers: Timers
  readonly guard: ProcessGuard
}

/** A transport over the standard input and output of a process. `close` resolves when all of that is gone. */
export interface StdioTransport extends Transport {
  readonly process: Pick<ServerProcess, 'stderrTail' | 'exit'>
}

/** Makes a transport; the client that connects through it starts the process. */
export function stdioTransport(command: StdioCommand, { sdk, timers, guard }: StdioParts): StdioTransport {
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
  const beginning = new Beginning()
  const onOutput = (chunk: Buffer): void => {
    const bytes = beginning.next(chunk)
    if (bytes === 'utf-16') {
      const why = 'its output is UTF-16, and messages are UTF-8: have it write UTF-8'
      return end(why, new Error(why))
    }
    try {
      messages.append(bytes)
      reading = reading.then(deliver)
    } catch (error) {
      end(`a message of it was longer than ${command.maxMessageBytes} bytes`, error)
    }
  }
  const onGone = (): void => {
    void reading.then(() => transport.onclose?.())
  }
  const server = serverProcess(command, { onOutput, onGone, onError: report }, timers, guard)
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

/** Takes the mark of a text's encoding off the beginning of an output: with it, the first message would be no JSON. */
class Beginning {
  #bytes: Buffer | undefined = Buffer.alloc(0)

  /** What of a chunk is read now. */
  next(chunk: Buffer): Buffer | 'utf-16' {
    if (this.#bytes === undefined) return chunk
    const bytes = Buffer.concat([this.#bytes, chunk])
    this.#bytes = bytes
    if (bytes.length < utf8Mark.length && startsAlike(bytes, utf8Mark)) return Buffer.alloc(0)
    if (bytes.length < 2 && utf16Marks.some((mark) => startsAlike(bytes, mark))) return Buffer.alloc(0)
    this.#bytes = undefined
    if (utf16Marks.some((mark) => startsAlike(bytes, mark))) return 'utf-16'
    return startsAlike(bytes, utf8Mark) ? bytes.subarray(utf8Mark.length) : bytes
  }
}

/** Whether one of the two begins with the other. */
function startsAlike(bytes: Buffer, mark: Buffer): boolean {
  const length = Math.min(bytes.length, mark.length)
  return bytes.subarray(0, length).equals(mark.subarray(0, length))
}
