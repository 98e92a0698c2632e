// How long a person waits for `list` and `stats` on a large ledger, and what keeping projections costs. The runs are made
// through the store. Usage: lists.ts [RUNS] [LEDGER], where LEDGER is a file, or the connection string of a database,
// in which that was done before, or is done now.
import { mkdtempSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import {
  createRuntime,
  defineAgent,
  type Ledger,
  memoryLedger,
  type RunId,
  type RuntimeEvent,
} from '@tallystick/core'
import { buildForkedEvents } from '@tallystick/core/internal'
import { manualClock, sampleRunId, scriptedModel, testTool, type ScriptedStep } from '@tallystick/testkit'
import { foldTo } from '../src/projection/fold-to.ts'
import { readLedgerStats } from '../src/projection/stats.ts'
import { postgresLedger } from '../src/postgres/postgres-ledger.ts'
import { countProjectionLag, rebuildProjections } from '../src/projection/projections.ts'
import { readRunSummaries, type SummaryFilter } from '../src/projection/run-summaries.ts'
import { sqliteLedger } from '../src/sqlite/sqlite-ledger.ts'

const [given = '100000', file] = process.argv.slice(2)
const runsOfLedger = Number(given)
const dayMs = 24 * 60 * 60 * 1000
const end = Date.UTC(2026, 5, 30)
const daysOfLedger = 60
const runsAtOnce = 256
const usage = { inputTokens: 1200, outputTokens: 80 }

/** Runs as ledgers have them: most are answered, some wait for a person, some failed. */
async function templates(): Promise<readonly (readonly RuntimeEvent[])[]> {
  const call = (name: string): ScriptedStep => ({
    text: 'I look.',
    toolCalls: [{ name, input: { at: 'tea' } }],
    usage,
  })
  const kinds: readonly (readonly [agent: string, steps: readonly ScriptedStep[]])[] = [
    ['shopper', [call('look'), { text: 'It is 5 USD.', usage }]],
    ['host', [{ text: 'Hello.', usage }]],
    ['buyer', [call('pay'), { text: 'Paid.', usage }]],
    ['clerk', [{ fail: 'authentication' }]],
  ]
  const found: (readonly RuntimeEvent[])[] = []
  for (const [name, steps] of kinds) {
    const ledger = memoryLedger()
    const tools = [testTool({ name: 'look' }), testTool({ name: 'pay', check: () => ({ kind: 'ask' }) })]
    const agent = defineAgent({
      name,
      instructions: 'Help.',
      model: scriptedModel(steps, `${name}-model`),
      tools,
    })
    const prices = { [`${name}-model`]: { inputUsd: 2, outputUsd: 10 } }
    const run = createRuntime({ ledger, prices, host: { clock: manualClock(0) } }).run(agent, 'Help me.')
    await run.result
    found.push(await Array.fromAsync(ledger.read(run.id)))
  }
  return found
}

/** The same run as another one, at its time; every fifth is of a session. */
function asRun(
  events: readonly RuntimeEvent[],
  ordinal: number,
  runId: RunId = sampleRunId(ordinal),
): readonly RuntimeEvent[] {
  const at = Math.floor(end - daysOfLedger * dayMs * (1 - ordinal / runsOfLedger))
  const session = ordinal % 5 === 0 && {
    sessionId: `session ${Math.floor(ordinal / 50)}`,
    sessionPlace: 1 + ((ordinal / 5) % 10),
  }
  return buildForkedEvents(events, { runId }).map((event) => {
    if (event.type !== 'run_started') return { ...event, at: at + event.seq }
    const { parent: _fork, ...started } = event
    return { ...started, ...session, at }
  })
}

async function append(ledger: Ledger, events: readonly RuntimeEvent[]): Promise<void> {
  const [{ runId }] = events as readonly [RuntimeEvent]
  await ledger.append(runId, { expectedSeq: 0, epoch: 1 }, events, { durability: 'lazy' })
}

/** Ten times as many answered as others. */
function templateOf(kinds: readonly (readonly RuntimeEvent[])[], ordinal: number): readonly RuntimeEvent[] {
  const kind = ordinal % 20
  return kinds[kind < 10 ? 0 : kind < 18 ? 1 : kind - 16] as readonly RuntimeEvent[]
}

async function fill(ledger: Ledger, kinds: readonly (readonly RuntimeEvent[])[]): Promise<void> {
  for (let ordinal = 1; ordinal <= runsOfLedger; ordinal += runsAtOnce) {
    const group = Array.from({ length: Math.min(runsAtOnce, runsOfLedger + 1 - ordinal) }, (_, index) => {
      return asRun(templateOf(kinds, ordinal + index), ordinal + index)
    })
    await Promise.all(group.map((events) => append(ledger, events)))
  }
}

function report(what: string, ms: number, more = ''): void {
  console.log(`${what.padEnd(52)} ${ms.toFixed(ms < 100 ? 1 : 0).padStart(9)} ms  ${more}`)
}

async function timed<T>(
  what: string,
  work: () => Promise<T>,
  more: (found: T) => string = () => '',
): Promise<T> {
  const begun = performance.now()
  const found = await work()
  report(what, performance.now() - begun, more(found))
  return found
}

const pageOf = (ledger: Ledger, filter: SummaryFilter, refresh = true): Promise<readonly unknown[]> =>
  Array.fromAsync(readRunSummaries(ledger, { limit: 50, ...filter }, { refresh }))

const folder = mkdtempSync(join(tmpdir(), 'tallystick-bench-'))
const path = file ?? join(folder, 'runs.db')
const isFile = !path.startsWith('postgres')
const kinds = await templates()

/** Opened when it has answered. */
async function open(): Promise<Ledger> {
  const opened = isFile ? sqliteLedger(path) : postgresLedger({ connectionString: path })
  await opened.head(sampleRunId(1))
  return opened
}

function tellSize(): void {
  if (isFile) console.log(`the file has ${Math.round(statSync(path).size / 2 ** 20)} MiB`)
}

let ledger = await timed('open', open)
if ((await ledger.head(sampleRunId(1))) === undefined) {
  await timed(`make ${runsOfLedger.toLocaleString('en')} runs`, () => fill(ledger, kinds))
  await ledger.close()
  tellSize()
  ledger = await open()
}
const listed = (runs: readonly unknown[]): string => `${runs.length} runs`
await timed('list, without projections', () => pageOf(ledger, {}), listed)
await timed(
  'rebuild',
  () => rebuildProjections(ledger),
  (made) => JSON.stringify(made),
)
await ledger.close()
tellSize()

ledger = await timed('open again', open)
const middle = sampleRunId(Math.ceil(runsOfLedger / 2))
const since = end - 7 * dayMs
await timed('list', () => pageOf(ledger, {}), listed)
await timed('list, after the run in the middle', () => pageOf(ledger, { before: middle }), listed)
await timed('list, those that wait', () => pageOf(ledger, { statuses: ['suspended'] }), listed)
await timed('list, those that failed lately', () => pageOf(ledger, { statuses: ['failed'], since }), listed)
await timed(
  'list, of an agent, from the middle on',
  () => pageOf(ledger, { agent: 'buyer', before: middle }),
  listed,
)
await timed('list, of the last hour', () => pageOf(ledger, { since: end - dayMs / 24 }), listed)
const stats = (refresh = true): ReturnType<typeof readLedgerStats> =>
  readLedgerStats(ledger, { since, maxListed: 20 }, { refresh })
await timed('stats of seven days', stats, ({ counts }) => JSON.stringify(counts))
// Ids of their own each time, so that a file can be used again.
const fresh = 0x1000_0000_0000 + Math.floor(performance.timeOrigin)
for (let index = 0; index < 10; index++) {
  // None of these is of a session, whose places are taken.
  await append(ledger, asRun(templateOf(kinds, index), runsOfLedger * 5 + 1, sampleRunId(fresh + index)))
}
const lag = (behind: number | undefined): string => `${behind} events of lag`
await timed('how far behind, with ten runs more', () => countProjectionLag(ledger), lag)
await timed('stats, reading only', () => stats(false))
await timed('stats, keeping what it folds', () => stats())
await timed('stats again', () => stats())

const long = sampleRunId(fresh + 10)
const deltas = 50_000
const [started, ...rest] = asRun(kinds[1] as readonly RuntimeEvent[], 1, long) as readonly [
  RuntimeEvent,
  ...RuntimeEvent[],
]
const streamed = rest.filter(({ type }) => type === 'assistant_text_delta').at(-1) as RuntimeEvent
const before = [started, ...rest].filter(({ seq }) => seq < streamed.seq)
const renamed = (event: RuntimeEvent, seq: number): RuntimeEvent => ({ ...event, runId: long, seq })
const all = [
  ...before.map((event, index) => renamed(event, index + 1)),
  ...Array.from({ length: deltas }, (_, index) => renamed(streamed, before.length + index + 1)),
]
for (let index = 0; index < all.length; index += 1024) {
  const some = all.slice(index, index + 1024)
  await ledger.append(long, { expectedSeq: index, epoch: 1 }, some, { durability: 'lazy' })
}
await timed(`fold a run of ${all.length.toLocaleString('en')} events`, () =>
  foldTo(ledger, long, undefined, { snapshots: false }),
)
await foldTo(ledger, long)
await timed('fold it from its snapshot', () => foldTo(ledger, long))
await ledger.close()
rmSync(folder, { recursive: true })
