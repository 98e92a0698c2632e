import type { TestProject } from 'vitest/node'
import { startPostgres, type PostgresServer } from './postgres-process.ts'

declare module 'vitest' {
  interface ProvidedContext {
    readonly postgres: PostgresServer
  }
}

/** One server for all tests that need one. Their data is worth nothing, so it waits for no disk. */
export async function setup(project: TestProject): Promise<() => Promise<void>> {
  const { server, end } = await startPostgres(['fsync=off', 'full_page_writes=off'])
  if ('unavailable' in server) console.warn(`Tests on Postgres are left out: ${server.unavailable}.`)
  project.provide('postgres', server)
  return end
}
