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
  const onOutput = (chunk: Buffer): void => {
    try {
      messages.append(chunk)
      reading = reading.then(deliver)
    } catch (error) {
      whyKilled = `a message of it was longer than ${command.maxMessageBytes} bytes`
      report(error)
      server.kill()
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
