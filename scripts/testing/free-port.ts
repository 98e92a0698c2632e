import { randomInt } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:net'

/** Below the ports that systems give to whoever asks for any, above those that browsers refuse. */
const [firstPort, endPort] = [16_384, 32_768] as const

/**
 * Returns a port of the loopback that nothing listens on now. No other server or connection of the machine is given it by
 * chance before the caller, or a process that it starts, listens there; nor while that is started again.
 */
export async function findFreePort(): Promise<number> {
  for (;;) {
    const port = randomInt(firstPort, endPort)
    const probe = createServer().listen(port, '127.0.0.1')
    try {
      await once(probe, 'listening')
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'EADDRINUSE') continue
      throw error
    }
    probe.close()
    await once(probe, 'close')
    return port
  }
}
