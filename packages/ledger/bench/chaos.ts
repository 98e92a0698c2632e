// Kills a Postgres server under several processes that append to shared runs, again and again, and says what came of it.
// Usage: node packages/ledger/bench/chaos.ts [SECONDS] [SEED]
import { randomInt } from 'node:crypto'
import { seededRandom } from '@tallystick/testkit'
import { runChaos } from '../test/support/chaos.ts'
import { mortalServer } from '../test/support/crash-server.ts'

const seconds = Number(process.argv[2] ?? 60)
const seed = Number(process.argv[3] ?? randomInt(2 ** 31))
const server = await mortalServer()
if ('unavailable' in server) throw new Error(server.unavailable)
try {
  const begun = performance.now()
  const isTime = (): boolean => performance.now() - begun < seconds * 1000
  const report = await runChaos(server, { writers: 3, runs: 6, random: seededRandom(seed), goesOn: isTime })
  console.log({ seed, seconds: Math.round((performance.now() - begun) / 1000), ...report })
  const { lost, missed, repeated, faults } = report
  process.exitCode = lost.length + missed + repeated + faults.length > 0 ? 1 : 0
} finally {
  await server.end()
}
