import { seededRandom } from '@tallystick/testkit'
import { describe, expect, it } from 'vitest'
import { testSeed } from '../../../scripts/testing/seed.ts'
import { runChaos } from './support/chaos.ts'
import { courseOf } from './support/crash-course.ts'
import { surviveDeath } from './support/crash-deaths.ts'
import { play } from './support/crash-play.ts'
import { choosePoints, pointText, type Point } from './support/crash-point.ts'
import { mortalServer } from './support/crash-server.ts'
import type { Ground } from './support/crash-site.ts'
import { connectionString, freshSchema, hasPostgres } from './support/postgres-database.ts'

/** Printed with every failure, as part of the place: `pnpm crashes --point` goes there again. */
const random = seededRandom(testSeed)

// Only a platform without Postgres leaves them out, and the run says so.
describe.skipIf(!hasPostgres)('a process that is cut off at some boundary of a run in Postgres', () => {
  const ground: Ground = { kind: 'postgres', connectionString, schema: freshSchema() }

  async function faultsIn(scenario: string, kind: Point['kind']): Promise<readonly string[]> {
    const course = await courseOf(ground, scenario)
    const [point] = choosePoints([course], { store: 'postgres', kind, count: 1 }, random)
    if (point === undefined) throw new Error(`${scenario} has no boundaries.`)
    const { violations } = await play(point, ground)
    return violations.map((violation) => `${pointText(point)}: ${violation}`)
  }

  // `pnpm crashes` plays hundreds of places in every scenario.
  it.each(['writes', 'reconcile', 'approval', 'child approval', 'fork', 'steer'])(
    'in %s leaves what another takes to its end, when it was killed',
    async (scenario) => expect(await faultsIn(scenario, 'kill')).toEqual([]),
  )

  it.each(['writes', 'session', 'guarded'])(
    'in %s is overtaken, and adds nothing, when it stands still',
    async (scenario) => expect(await faultsIn(scenario, 'stop')).toEqual([]),
  )
})

// Only a platform without Postgres leaves them out, and the run says so.
describe.skipIf(!hasPostgres)('a server that is killed with all its processes amid a run', () => {
  it('keeps what was acknowledged, and the run is taken to its end when it is back', async () => {
    const server = await mortalServer()
    if ('unavailable' in server) throw new Error(server.unavailable)
    try {
      const ground: Ground = { kind: 'postgres', connectionString: server.connectionString, schema: 'deaths' }
      for (const scenario of ['writes', 'child', 'session', 'deferred']) {
        const { boundaries } = await courseOf(ground, scenario)
        const at = 1 + Math.floor(random() * boundaries)
        const { violations } = await surviveDeath(server, { scenario, at })
        expect({ scenario, at, violations }).toEqual({ scenario, at, violations: [] })
      }
    } finally {
      await server.end()
    }
  })
})

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
