import { execFileSync } from 'node:child_process'
import { Client } from 'pg'
import { startPostgres, type PostgresProcess } from './postgres-process.ts'

/** A Postgres server that can be killed at once, in the middle of whatever it does. */
export interface MortalServer {
  readonly connectionString: string
  readonly isAlive: () => boolean
  /** Kills the server and every process of it. When this returns, none of them does anything any more. */
  readonly kill: () => void
  /** Starts it again on what it left. */
  readonly revive: () => Promise<void>
  readonly end: () => Promise<void>
}

/**
 * The log is written only when a commit asks for it, so that a death really loses what no commit had asked for. What was
 * handed to the operating system outlives the server.
 */
const settings = [
  'wal_writer_delay=10s',
  'wal_writer_flush_after=1GB',
  'autovacuum=off',
  'fsync=off',
  'full_page_writes=off',
]

/** Starts a server; says why where this machine has none. */
export async function mortalServer(): Promise<MortalServer | { readonly unavailable: string }> {
  const postgres: PostgresProcess = await startPostgres(settings)
  if ('unavailable' in postgres.server) {
    await postgres.end()
    return postgres.server
  }
  const { connectionString } = postgres.server
  let [pid, alive] = [await postmasterOf(connectionString), true]
  let killed: readonly number[] = []
  return {
    connectionString,
    isAlive: () => alive,
    kill() {
      killed = [pid, ...childrenOf(pid)]
      // The server first: it would answer the death of one of its own with a restart.
      for (const each of killed) killIfThere(each)
      alive = false
    },
    async revive() {
      while (killed.some(isThere)) await Promise.resolve()
      await postgres.start()
      ;[pid, alive] = [await postmasterOf(connectionString), true]
    },
    end: () => postgres.end(),
  }
}

async function postmasterOf(connectionString: string): Promise<number> {
  const client = new Client({ connectionString })
  await client.connect()
  const { rows } = await client.query<{ pid: number }>('select pg_backend_pid() as pid')
  const parent = execFileSync('ps', ['-o', 'ppid=', '-p', String(rows[0]?.pid)], { encoding: 'utf8' })
  await client.end()
  return Number(parent)
}

function childrenOf(pid: number): readonly number[] {
  const lines = execFileSync('ps', ['-A', '-o', 'pid=,ppid='], { encoding: 'utf8' }).trim().split('\n')
  const pairs = lines.map((line) => line.trim().split(/\s+/).map(Number))
  return pairs.flatMap(([child = 0, parent]) => (parent === pid ? [child] : []))
}

function killIfThere(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL')
  } catch {
    // It has ended already.
  }
}

/** Whether a process still holds anything: one that only waits to report its end does not. */
function isThere(pid: number): boolean {
  try {
    return !execFileSync('ps', ['-o', 'stat=', '-p', String(pid)], { encoding: 'utf8' }).startsWith('Z')
  } catch {
    return false
  }
}
