// Plays simulated worlds, and requires that every law holds in each and that all of them together reach what there is to reach:
// `pnpm simulate`. Options:
//   --seeds N        how many; default 50
//   --from S         the first seed; default 1
//   --minutes M      as many seeds as fit into this time
//   --first          ends at the first seed that fails
//   --partly         few seeds: transitions that they have not made are printed, and are no failure
//   --planted        plants faults into the sources, one after the other, and requires that each is found
//   --seed S         one seed, with its trace
//   --export FILE    writes the ledgers of that seed, one event a line
import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import type { RuntimeEvent } from '@tallystick/core'
import { importEvents, toExportLine, verifyLedger } from '@tallystick/ledger'
import { sqliteLedger } from '@tallystick/ledger/sqlite'
import {
  type FleetEnd,
  FleetError,
  fleetActs,
  fleetFaults,
  type FleetViolation,
  simulateFleet,
} from '@tallystick/testkit'
import { memoryFolder } from './testing/memory-folder.ts'
import { Coverage } from './simulation/coverage.ts'
import { createFleet } from './simulation/fleet.ts'
import { findReplayFault } from './simulation/judge.ts'
import { plantedFaults } from './simulation/planted.ts'

const { values: options } = parseArgs({
  options: {
    seeds: { type: 'string', default: '50' },
    from: { type: 'string', default: '1' },
    minutes: { type: 'string' },
    planted: { type: 'boolean', default: false },
    first: { type: 'boolean', default: false },
    partly: { type: 'boolean', default: false },
    seed: { type: 'string' },
    export: { type: 'string' },
  },
})

/** The chain of hashes is verified in one of so many worlds: it needs a copy in another store. */
const verifiedEach = 10

const coverage = new Coverage()
const folder = mkdtempSync(join(memoryFolder() ?? tmpdir(), 'simulated-'))
process.once('exit', () => rmSync(folder, { recursive: true, force: true }))
let copies = 0

/** Judges a world further than the testkit can: replays each run, and verifies a copy of the ledgers. */
async function judge({ seed, stores }: FleetEnd): Promise<readonly FleetViolation[]> {
  const found: FleetViolation[] = []
  for (const { name, ledger, runs } of stores) {
    for (const events of runs) {
      const runId = (events[0] as RuntimeEvent).runId
      try {
        coverage.addRun(events)
      } catch (error) {
        found.push({ law: 6, what: `run ${runId} cannot be folded: ${String(error)}` })
      }
      const replayed = await findReplayFault(ledger, events)
      if (replayed === 'removed') continue
      coverage.addLaw(14)
      if (replayed) found.push(replayed)
    }
    const isWhole = runs.every((events) => events.every(({ removed }) => removed === undefined))
    if (seed % verifiedEach !== 0 || !isWhole) continue
    await using copy = sqliteLedger(join(folder, `${copies++}.db`))
    await importEvents(copy, toLines(runs))
    for await (const verdict of verifyLedger(copy)) {
      coverage.addLaw(11)
      if (!verdict.ok)
        found.push({ law: 11, what: `the copy of ${name} does not verify: ${JSON.stringify(verdict)}` })
    }
  }
  return found
}

async function* toLines(runs: FleetEnd['stores'][number]['runs']): AsyncGenerator<string> {
  for (const events of runs) for (const event of events) yield toExportLine(event)
}

function print(lines: readonly string[]): void {
  for (const line of lines) console.log(line)
}

/** Plays the world of a seed; returns the error of one in which a law does not hold. */
async function play(
  seed: number,
  onEnd: (end: FleetEnd) => void,
  traced = false,
): Promise<FleetError | undefined> {
  try {
    await simulateFleet({
      ...createFleet(),
      judge,
      from: seed,
      seeds: 1,
      shrinks: !options.first,
      traced,
      onEnd,
    })
    return undefined
  } catch (error) {
    if (error instanceof FleetError) return error
    throw error
  }
}

/** Shows one world. */
async function show(seed: number): Promise<void> {
  const failure = await play(
    seed,
    ({ trace, stores }) => {
      print(trace)
      if (options.export === undefined) return
      const lines = stores.flatMap(({ runs }) => runs.flatMap((events) => events.map(toExportLine)))
      writeFileSync(options.export, lines.join('\n'))
    },
    true,
  )
  if (failure) throw failure
}

/** Plays many worlds; returns whether all held, and reached all that there is to reach. */
async function simulate(): Promise<boolean> {
  const started = performance.now()
  const first = Number(options.from)
  const last = options.minutes === undefined ? first + Number(options.seeds) : Infinity
  const until = options.minutes === undefined ? Infinity : started + Number(options.minutes) * 60_000
  let [seed, failed, steps, hours] = [first, 0, 0, 0]
  for (; seed < last && performance.now() < until && !(options.first && failed > 0); seed++) {
    const failure = await play(seed, (end) => {
      steps += end.steps
      hours += end.tookMs / 3_600_000
      coverage.addHappened(end.happened)
    })
    if (failure === undefined) continue
    const [line = ''] = failure.message.split('\n')
    print([failed++ === 0 ? failure.message : line])
  }
  const seconds = (performance.now() - started) / 1000
  const count = seed - first
  const speed = (count / seconds).toFixed(1)
  print([
    `${count} seeds in ${seconds.toFixed(0)} s, ${speed} a second: ${hours.toFixed(0)} simulated hours in ${steps} steps`,
    ...coverage.format(),
  ])
  const { missingTransitions } = coverage
  if (missingTransitions.length > 0) print([`not made    ${missingTransitions.join(', ')}`])
  const missing = [
    ...(options.partly ? [] : missingTransitions),
    ...coverage.missingLaws.map((law) => `law ${law}`),
    ...coverage.missingOf([...fleetFaults, ...fleetActs]),
    ...coverage.findTakenIllegals().taken.map((pair) => `the refusal of ${pair}`),
  ]
  if (missing.length > 0) print([`not reached ${missing.join(', ')}`])
  const holds = failed === 0 && missing.length === 0
  print([holds ? 'Every law holds.' : `FAILED: ${failed} of ${count} seeds, ${missing.length} not reached.`])
  return holds
}

/** Plants each fault alone, and plays worlds until one fails; returns whether all were found. */
function plant(): boolean {
  const missed = Object.keys(plantedFaults).filter((name) => {
    const started = performance.now()
    const script = ['--import', join(import.meta.dirname, 'simulation/plant.ts'), import.meta.filename]
    const { stdout, stderr } = spawnSync(
      process.execPath,
      [...script, '--first', '--partly', '--minutes', options.minutes ?? '10', '--from', options.from],
      { encoding: 'utf8', maxBuffer: 2 ** 28, env: { ...process.env, TALLYSTICK_PLANTED: name } },
    )
    const [found] = /^Seed .*/m.exec(stdout) ?? []
    const seconds = ((performance.now() - started) / 1000).toFixed(0)
    // Sources that have changed hold a fault no more, and say so.
    const [unplanted = 'NOT FOUND'] = /^Error: .* does not hold once.*/m.exec(stderr) ?? []
    print([`${name.padEnd(36)} ${seconds.padStart(4)} s  ${found ?? unplanted}`])
    return found === undefined
  })
  return missed.length === 0
}

if (options.seed !== undefined) await show(Number(options.seed))
else if (options.planted) process.exitCode = plant() ? 0 : 1
else process.exitCode = (await simulate()) ? 0 : 1
