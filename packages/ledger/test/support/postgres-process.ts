import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'

/** How to reach a server; or why this machine has no server. */
export type PostgresServer = { readonly connectionString: string } | { readonly unavailable: string }

export interface PostgresProcess {
  readonly server: PostgresServer
  /** Stops it at once, without writing anything down, as a crash does. */
  readonly kill: () => Promise<void>
  /** Starts it again, on the same port with the same data. */
  readonly start: () => Promise<void>
  /** Ends it and removes its data. */
  readonly end: () => Promise<void>
}

/** Starts a server with these settings, each `name=value`. */
export async function startPostgres(settings: readonly string[]): Promise<PostgresProcess> {
  const script = fileURLToPath(new URL('postgres-server.ts', import.meta.url))
  const child = spawn(process.execPath, [script, ...settings.flatMap((setting) => ['-c', setting])], {
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  const exit = once(child, 'exit')
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
  const hear = async (): Promise<unknown> => {
    const { value, done } = await lines.next()
    if (done) throw new Error('The process of the Postgres server has ended.')
    return JSON.parse(value) as unknown
  }
  const order = async (command: string): Promise<void> => {
    child.stdin.write(`${command}\n`)
    const received = await hear()
    if (received !== command) throw new Error(`The Postgres server answers ${JSON.stringify(received)}.`)
  }
  return {
    server: (await hear()) as PostgresServer,
    kill: () => order('kill'),
    start: () => order('start'),
    async end() {
      child.stdin.end()
      await exit
    },
  }
}
