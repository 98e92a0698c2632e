// A Postgres server of its own, on a free port, with its data in a folder that goes when it ends. It says on stdout, a
// JSON line each, how to connect, and answers the commands on stdin: `kill` stops it at once, without writing anything
// down, as a crash does; `start` starts it again. It ends when stdin does, so with the process that asked for it,
// however that ends. Usage: postgres-server.ts [settings of postgres, such as -c fsync=off]
import { randomBytes } from 'node:crypto'
import { spawn, spawnSync, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { chownSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { findFreePort } from '../../../../scripts/testing/free-port.ts'
import { findBinaries, type PostgresBinaries } from './postgres-binaries.ts'

const folder = mkdtempSync(join(tmpdir(), 'tallystick-postgres-'))
const data = join(folder, 'data')
const password = randomBytes(16).toString('hex')
const settings = process.argv.slice(2)
const maxTries = 5

function say(line: unknown): void {
  process.stdout.write(`${JSON.stringify(line)}\n`)
}

function initialise({ initdb, user }: PostgresBinaries): void {
  const passwordFile = join(folder, 'password')
  writeFileSync(passwordFile, password)
  if (user.uid !== undefined && user.gid !== undefined) {
    for (const path of [folder, passwordFile]) chownSync(path, user.uid, user.gid)
  }
  const options = ['--username=postgres', `--pwfile=${passwordFile}`, '--auth=password', '--encoding=UTF8']
  const { status, stderr } = spawnSync(
    initdb,
    [`--pgdata=${data}`, ...options, '--locale=C', '--no-sync', '--no-instructions'],
    { ...user, encoding: 'utf8' },
  )
  if (status !== 0) throw new Error(`Postgres makes no database here: ${stderr.trim()}`)
}

/** Answers the process once it accepts connections; what it wrote to its log where it ended before. */
async function start({ postgres, user }: PostgresBinaries, port: number): Promise<ChildProcess | string> {
  const own = [
    '-c',
    'listen_addresses=127.0.0.1',
    '-c',
    'unix_socket_directories=',
    '-c',
    'max_connections=300',
  ]
  const server = spawn(postgres, ['-D', data, '-p', String(port), ...own, ...settings], {
    ...user,
    stdio: ['ignore', 'ignore', 'pipe'],
    env: { ...process.env, LC_ALL: 'C', TZ: 'UTC' },
  })
  let log = ''
  for await (const line of createInterface({ input: server.stderr })) {
    log += `${line}\n`
    if (!line.includes('database system is ready to accept connections')) continue
    server.stderr.resume()
    return server
  }
  return log
}

async function startSomewhere(binaries: PostgresBinaries): Promise<readonly [ChildProcess, number]> {
  let log = ''
  for (let tries = 0; tries < maxTries; tries++) {
    const port = await findFreePort()
    const started = await start(binaries, port)
    if (typeof started !== 'string') return [started, port]
    // Another process may have taken the port meanwhile.
    log = started
  }
  throw new Error(`Postgres does not start here: ${log.trim()}`)
}

async function end(server: ChildProcess): Promise<void> {
  if (server.exitCode !== null || server.signalCode !== null) return
  const exit = once(server, 'exit')
  server.kill('SIGQUIT')
  await exit
}

async function serve(): Promise<void> {
  const binaries = await findBinaries(folder)
  initialise(binaries)
  let [server, port] = await startSomewhere(binaries)
  try {
    say({ connectionString: `postgres://postgres:${password}@127.0.0.1:${port}/postgres` })
    for await (const command of createInterface({ input: process.stdin })) {
      if (command === 'kill') await end(server)
      if (command === 'start') {
        const started = await start(binaries, port)
        if (typeof started === 'string') throw new Error(`Postgres does not start again: ${started}`)
        server = started
      }
      say(command)
    }
  } finally {
    await end(server)
  }
}

// The process that asked for the server ends it by closing stdin, also when a terminal interrupts all of them.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => undefined)
try {
  await serve()
} catch (error) {
  say({ unavailable: error instanceof Error ? error.message : String(error) })
} finally {
  rmSync(folder, { recursive: true, force: true })
}
