import { mortalServer, type MortalServer } from '../../packages/ledger/test/support/crash-server.ts'

/** Lends a Postgres server; where this machine has none, says why, and answers 0. */
export async function withServer(use: (server: MortalServer) => Promise<number>): Promise<number> {
  const server = await mortalServer()
  if ('unavailable' in server) {
    console.log(`postgres  left out: ${server.unavailable}`)
    return 0
  }
  try {
    return await use(server)
  } finally {
    await server.end()
  }
}
