import { seededRandom } from '@tallystick/testkit'
import { describe, expect, it } from 'vitest'
import { testSeed } from '../../../scripts/testing/seed.ts'
import { runChaos } from './support/chaos.ts'
import { mortalServer } from './support/crash-server.ts'
import { hasPostgres } from './support/postgres-database.ts'

// Only a platform without Postgres leaves them out, and the run says so.
describe.skipIf(!hasPostgres)('several processes on a Postgres server that is killed again and again', () => {
  // `node packages/ledger/bench/chaos.ts` runs for as long as its argument says.
  it('lose nothing that a barrier follows, see every event once, and continue without help', async () => {
    const server = await mortalServer()
    if ('unavailable' in server) throw new Error(server.unavailable)
    try {
      const random = seededRandom(testSeed)
      const report = await runChaos(server, { writers: 3, runs: 4, random, goesOn: (kills) => kills < 4 })
      const sound = { kills: 4, lost: [], missed: 0, repeated: 0, faults: [] }
      expect({ seed: testSeed, ...report }).toMatchObject({ seed: testSeed, ...sound, seen: report.events })
      expect(report.barriers).toBeGreaterThan(4)
    } finally {
      await server.end()
    }
  })
})
