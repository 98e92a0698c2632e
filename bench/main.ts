// Measures Tallystick and its peers: `pnpm bench`, and what to measure. See docs/benchmarks.md.
import { startPostgres } from '../packages/ledger/test/support/postgres-process.ts'
import { BeforeError, findCommit, commitText, installBefore, todayText } from './runner/before.ts'
import { load, machineText, versionsText } from './runner/machine.ts'
import {
  type Bench,
  listEntries,
  measureEntry,
  type Operator,
  type Row,
  smokeEntries,
} from './runner/measure-all.ts'
import { readOptions, UsageError, type BenchOptions } from './runner/options.ts'
import { absoluteTable, failures, leftOut, ratioTable } from './runner/tables.ts'
import { installWorkspace } from './runner/workspace.ts'

/** Shows what is being done: on a terminal in one line that changes. */
function say(what: string): void {
  const { stderr } = process
  if (stderr.isTTY) stderr.write(`\r\u001B[2K${what.slice(0, stderr.columns - 1)}`)
  else stderr.write(`${what}\n`)
}

/** Whether a chosen case needs a Postgres server. */
function needsPostgres({ cases, smoke }: BenchOptions): boolean {
  return !smoke && cases.some(({ onPostgres = [] }) => onPostgres.length > 0)
}

/** A Postgres server that syncs, where this machine has one. */
async function postgresServer(cleanUp: AsyncDisposableStack): Promise<string | undefined> {
  say('starting Postgres')
  const { server, end } = await startPostgres([])
  cleanUp.defer(end)
  if ('connectionString' in server) return server.connectionString
  say(`Postgres is left out: ${server.unavailable}`)
  return undefined
}

/** Installs what is measured. */
async function prepare(
  options: BenchOptions,
  operator: Operator,
  cleanUp: AsyncDisposableStack,
): Promise<Bench> {
  const commit = options.before === undefined ? undefined : await findCommit(options.before)
  // Told as it is installed: the clone may be changed while it is measured.
  const commits = commit && `today:    ${await todayText()}\nbefore:   ${await commitText(commit)}`
  const home = options.own ? import.meta.dirname : await installWorkspace(operator)
  const before = commit && (await installBefore(commit, { isPacked: !options.own, operator, cleanUp }))
  const postgres = (): Promise<string | undefined> =>
    needsPostgres(options) ? postgresServer(cleanUp) : Promise.resolve(undefined)
  return {
    ...{ options, operator },
    today: { home, postgres: await postgres() },
    // A server of its own: another commit may lay out its tables otherwise.
    before: before === undefined ? undefined : { home: before, postgres: await postgres() },
    commits,
  }
}

async function measure(bench: Bench): Promise<number> {
  const { options, today } = bench
  const loadBefore = load()
  const rows: Row[] = []
  for (const entry of listEntries(options, today.postgres !== undefined)) {
    rows.push(...(await measureEntry(entry, bench)))
  }
  say('')
  console.log(`${figureTables(rows, options.rounds)}\n`)
  console.log(machineText(loadBefore))
  console.log(versionsText(today.home))
  if (bench.commits !== undefined) console.log(bench.commits)
  for (const line of leftOut(rows)) console.error(`\nleft out, does not fit ${options.before}: ${line}`)
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
  const entries = listEntries(bench.options, false)
  const halves = [0, 1].map((half) => entries.filter((_, index) => index % 2 === half))
  const faults = (await Promise.all(halves.map((half) => smokeEntries(half, bench)))).flat()
  for (const fault of faults) console.error(`\n${fault}`)
  const checked = entries.reduce((sum, { subjects }) => sum + subjects.length, 0)
  console.log(`bench: ${checked} results checked, ${faults.length} wrong`)
  return faults.length > 0 ? 1 : 0
}

async function main(args: readonly string[], stop: AbortSignal): Promise<number> {
  const options = readOptions(args)
  if (typeof options === 'string') {
    console.log(options)
    return 0
  }
  await using cleanUp = new AsyncDisposableStack()
  const bench = await prepare(options, { say, stop }, cleanUp)
  return await (options.smoke ? smoke(bench) : measure(bench))
}

const stopping = new AbortController()
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => stopping.abort())
try {
  process.exitCode = await main(process.argv.slice(2), stopping.signal)
} catch (error) {
  if (stopping.signal.aborted) {
    console.error('\nStopped; nothing is left behind.')
    process.exitCode = 130
  } else if (error instanceof UsageError) {
    console.error(`${error.message}\nMore: pnpm bench --help`)
    process.exitCode = 2
  } else if (error instanceof BeforeError) {
    console.error(error.message)
    process.exitCode = 1
  } else throw error
}
