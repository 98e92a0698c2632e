import type { ReadStream } from 'node:tty'
import { spawn, type IPty } from '@lydell/node-pty'

/**
 * Starts a program in a pseudo-terminal, and reports its end when all of its output was read. node-pty closes the
 * terminal 200 ms after the end, read or not: a busy machine takes longer. The system itself ends what is read whole.
 */
export function spawnAtTerminal(...given: Parameters<typeof spawn>): IPty {
  const child = spawn(...given)
  const { _socket: socket } = child as unknown as { readonly _socket: ReadStream }
  const destroy = socket.destroy.bind(socket)
  // The end of output is an error of Linux; of other systems, macOS needs the limit: its terminals do not always end.
  socket.destroy = (error) =>
    error || socket.readableEnded || process.platform === 'darwin' ? destroy(error) : socket
  return child
}
