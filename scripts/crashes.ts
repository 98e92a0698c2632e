// Cuts processes off that drive agents, at generated places, and judges from outside what those that take over make of
// it: `pnpm crashes`. Slow; verify plays fewer. Options:
//   --store NAME    sqlite or postgres; both where not given
//   --points N      processes killed on each store; 300 where not given
//   --stops N       processes stopped, overtaken and continued on each store; 24 where not given
//   --deaths N      deaths of a Postgres server; 24 where not given
//   --scenario NAME only where this is played
//   --seed S        chooses the places; drawn and printed where not given
//   --point WORD    only this place, as a failure names it
import { randomInt } from 'node:crypto'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { parsePoint, type Point } from '../packages/ledger/test/support/crash-point.ts'
import { scenarios } from '../packages/ledger/test/support/crash-scenarios.ts'
import { deathsFigures } from './crashes/deaths.ts'
import { cutOffFigures } from './crashes/cut-off.ts'
import { withServer } from './crashes/server.ts'
import { memoryFolder } from './testing/memory-folder.ts'

const { values } = parseArgs({
  options: {
    store: { type: 'string' },
    points: { type: 'string', default: '300' },
    stops: { type: 'string', default: '24' },
    deaths: { type: 'string', default: '24' },
    scenario: { type: 'string' },
    seed: { type: 'string' },
    point: { type: 'string' },
  },
})

// Every process loads the same sources: Node compiles them once.
process.env['NODE_COMPILE_CACHE'] ??= join(tmpdir(), 'tallystick-compile-cache')
// The system keeps what a killed process has written, so no disk has to: most of the time went into syncs.
const folder = memoryFolder()
if (folder !== undefined) process.env['TMPDIR'] ??= folder
const begun = performance.now()
const point = values.point === undefined ? undefined : parsePoint(values.point)
const seed = Number(values.seed ?? randomInt(2 ** 31))
const played = scenarios.filter(({ name }) => values.scenario === undefined || values.scenario === name)
const plan = { seed, kills: Number(values.points), stops: Number(values.stops), played }
const stores: readonly Point['store'][] = point
  ? [point.store]
  : (['sqlite', 'postgres'] as const).filter((store) => values.store === undefined || values.store === store)
if (played.length === 0) throw new Error(`No scenario is called ${values.scenario}.`)
if (stores.length === 0) throw new Error(`No store is called ${values.store}. There are sqlite and postgres.`)

if (point === undefined) console.log(`seed ${seed}`)
let violations = 0
for (const store of stores) {
  if (store === 'sqlite') violations += await cutOffFigures('sqlite', plan, point)
  else {
    violations += await withServer(async (server) => {
      const { connectionString } = server
      const ground = { kind: 'postgres', connectionString, schema: 'crashes' } as const
      const found = await cutOffFigures(ground, plan, point)
      return point
        ? found
        : found + (await deathsFigures(server, { seed, count: Number(values.deaths), played }))
    })
  }
}
console.log(`${violations} violations in ${Math.round((performance.now() - begun) / 1000)} s`)
process.exitCode = violations > 0 ? 1 : 0
