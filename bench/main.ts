// Measures Tallystick and its peers: `pnpm bench`, and what to measure. See docs/benchmarks.md.
import { startPostgres } from '../packages/ledger/test/support/postgres-process.ts'
import { load, machineText, versionsText } from './runner/machine.ts'
import { entriesOf, measureEntry, smokeEntries, type Bench, type Row } from './runner/measure-all.ts'
import { readOptions, UsageError, type BenchOptions } from './runner/options.ts'
import { profileTables } from './runner/profile-tables.ts'
import { absoluteTable, failures, ratioTable } from './runner/tables.ts'
import { installWorkspace } from './runner/workspace.ts'

/** Shows what is being done: on a terminal in one line that changes. */
function say(what: string): void {
  const { stderr } = process
  if (stderr.isTTY) stderr.write(`\r\u001B[2K${what.slice(0, stderr.columns - 1)}`)
  else stderr.write(`${what}\n`)
}

/** A Postgres server that syncs, where a chosen case needs one. */
async function postgresFor({ cases, smoke }: BenchOptions): Promise<{ at?: string; end(): Promise<void> }> {
  if (smoke || !cases.some(({ onPostgres = [] }) => onPostgres.length > 0)) return { end: async () => {} }
  say('starting Postgres')
  const { server, end } = await startPostgres([])
  if ('unavailable' in server) say(`Postgres is left out: ${server.unavailable}`)
  return { ...('connectionString' in server && { at: server.connectionString }), end }
}

async function measure(bench: Bench): Promise<number> {
  const loadBefore = load()
  const rows: Row[] = []
  for (const entry of entriesOf(bench.options, bench.postgres !== undefined)) {
    rows.push(...(await measureEntry(entry, bench)))
  }
  say('')
  console.log(`${bench.options.profile ? profileTables(rows) : figureTables(rows, bench.options.rounds)}\n`)
  console.log(machineText(loadBefore))
  console.log(versionsText(bench.home))
  const failed = failures(rows)
  for (const failure of failed) console.error(`\nfailed: ${failure}`)
  return failed.length > 0 ? 1 : 0
}

function figureTables(rows: readonly Row[], rounds: number): string {
  return [
    `Ratios. Below 1: the first takes less. Medians of ${rounds} rounds.`,
    ratioTable(rows),
    'Figures. CPU is the time of all threads of the process.',
    absoluteTable(rows),
  ].join('\n\n')
}

/** In two processes at a time: nothing is measured. */
async function smoke(bench: Bench): Promise<number> {
  const entries = entriesOf(bench.options, false)
  const halves = [0, 1].map((half) => entries.filter((_, index) => index % 2 === half))
  const faults = (await Promise.all(halves.map((half) => smokeEntries(half, bench)))).flat()
  for (const fault of faults) console.error(`\n${fault}`)
  const checked = entries.reduce((sum, { subjects }) => sum + subjects.length, 0)
  console.log(`bench: ${checked} results checked, ${faults.length} wrong`)
  return faults.length > 0 ? 1 : 0
}

async function main(args: readonly string[]): Promise<number> {
  const options = readOptions(args)
  if (typeof options === 'string') {
    console.log(options)
    return 0
  }
  const home = options.own ? import.meta.dirname : installWorkspace(say)
  const postgres = await postgresFor(options)
  try {
    const bench = { home, options, postgres: postgres.at, say }
    return await (options.smoke ? smoke(bench) : measure(bench))
  } finally {
    await postgres.end()
  }
}

try {
  process.exitCode = await main(process.argv.slice(2))
} catch (error) {
  if (!(error instanceof UsageError)) throw error
  console.error(`${error.message}\nMore: pnpm bench --help`)
  process.exitCode = 2
}
