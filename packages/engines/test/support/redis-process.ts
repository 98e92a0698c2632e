import { spawn, type ChildProcess } from 'node:child_process'
import { accessSync, constants, globSync, mkdtempSync, rmSync } from 'node:fs'
import { once } from 'node:events'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { createInterface } from 'node:readline'
import { findFreePort } from '../../../../scripts/testing/free-port.ts'

/** Where `installLine` unpacks Debian's package, with the libraries that it needs. */
const ownRoot = join(import.meta.dirname, '../../../../.runtimes/redis/usr')
const installLine = 'apt-get install redis-server, or scripts/testing/install-engines.sh'

/** The path of a server of Redis or Valkey; `undefined` if this machine has none. */
const serverPath: string | undefined = [join(ownRoot, 'bin'), ...(process.env['PATH'] ?? '').split(delimiter)]
  .flatMap((folder) => [join(folder, 'redis-server'), join(folder, 'valkey-server')])
  .find(isExecutable)

/** Whether the tests on Redis are left out, which this says; with TALLYSTICK_ENGINES=all they fail instead. */
export const lacksRedis: boolean = serverPath === undefined && process.env['TALLYSTICK_ENGINES'] !== 'all'
if (lacksRedis) console.warn(`The tests on Redis are left out. Install it: ${installLine}`)

/** A server in a process of its own, that writes down each change before it answers. */
export interface RedisProcess extends AsyncDisposable {
  readonly port: number
  /** Ends it at once, without writing anything down, as a crash does. */
  kill(): Promise<void>
  /** Starts it again, on the same port with the same data. */
  start(): Promise<void>
}

/** Starts a server on a free port of this machine, with a folder of its own. */
export async function startRedis(): Promise<RedisProcess> {
  if (serverPath === undefined) throw new Error(`This machine has no server of Redis. ${installLine}`)
  const folder = mkdtempSync(join(tmpdir(), 'tallystick-redis-'))
  const port = await findFreePort()
  const settings = {
    bind: '127.0.0.1',
    port,
    dir: folder,
    appendonly: 'yes',
    appendfsync: 'always',
    save: '',
  }
  const args = Object.entries(settings).flatMap(([name, value]) => [`--${name}`, String(value)])
  let child: ChildProcess | undefined
  const kill = async (): Promise<void> => {
    if (!child) return
    const exit = once(child, 'exit')
    child.kill('SIGKILL')
    await exit
    child = undefined
  }
  const start = async (): Promise<void> => {
    const libraries = [...globSync(join(ownRoot, 'lib/*-linux-gnu')), process.env['LD_LIBRARY_PATH'] ?? '']
    const env = { ...process.env, LD_LIBRARY_PATH: libraries.join(':') }
    const starting = spawn(serverPath, args, { env, stdio: ['ignore', 'pipe', 'inherit'] })
    child = starting
    for await (const line of createInterface({ input: starting.stdout })) {
      if (!line.includes('Ready to accept connections')) continue
      starting.stdout.resume()
      return
    }
    throw new Error('The server of Redis has ended.')
  }
  await start()
  return {
    port,
    kill,
    start,
    async [Symbol.asyncDispose]() {
      await kill()
      rmSync(folder, { recursive: true })
    },
  }
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK)
    return true
  } catch {
    return false
  }
}
