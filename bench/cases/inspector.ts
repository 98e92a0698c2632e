import { type Clock, createRuntime, defineAgent, type Ledger } from '@tallystick/core'
import { readRunSummaries, type SummaryFilter } from '@tallystick/ledger'
import { postgresLedger } from '@tallystick/ledger/postgres'
import { sqliteLedger } from '@tallystick/ledger/sqlite'
import { createServer, type Principal } from '@tallystick/server'
import { manualClock, sampleRunId, scriptedModel, testTool } from '@tallystick/testkit'
import BetterSqlite3 from 'better-sqlite3'
import { Client } from 'pg'
import type { Case, Trial } from './case.ts'
import { metered } from './meter.ts'
import { fileIn } from './recorded-run.ts'

/** Runs that are driven after the others, so that pages show runs whose events are read. */
const drivenRuns = 200

const dayMs = 24 * 60 * 60 * 1000
const month = Date.now() - 30 * dayMs
/** Before all others. */
const oldDay = month - 10 * dayMs

/** The first pages that a reader of many runs asks for, each under the name of its figure. */
const pages: Readonly<Record<string, string>> = {
  'ms first page': '/runs',
  'ms by status and agent': '/runs?status=done&agent=clerk',
  'ms by a common tool': '/runs?tool=look&outcome=success',
  'ms by a rare outcome': '/runs?tool=pay&outcome=failed',
  'ms by a rare reason': '/runs?reason=turn_limit',
  'ms by a rare tag': '/runs?tag=rare',
  'ms by two that exclude each other': '/runs?tool=look&tag=rare',
  'ms since an hour': `/runs?since=${Date.now() - dayMs / 24}`,
  'ms of the bar of an old day': `/runs?startedSince=${oldDay}&startedUntil=${oldDay + dayMs}&roots=true`,
  'ms by a rare reason in a month': `/runs?startedSince=${month}&reason=turn_limit`,
  'ms of one subject': '/runs?subject=ada',
  'ms of a caller with one subject': '/runs',
  'ms due': '/due',
  'ms search by tool': '/search?tool=pay&outcome=failed',
  'ms stats of a month by day': `/stats?by=day&startedSince=${month}`,
  'ms stats of a month by hour': `/stats?by=hour&startedSince=${month}`,
}

/** First pages of runs whose events are not there, as the ledger finds them. */
const lists: Readonly<Record<string, SummaryFilter>> = {
  'ms to find a day among all': {
    startedSince: month + 3 * dayMs,
    startedUntil: month + 4 * dayMs,
    roots: true,
  },
  'ms to find a tool in an hour': { startedSince: month, startedUntil: month + dayMs / 24, tool: 'look' },
  'ms to find a common status in a month': { startedSince: month, statuses: ['done'] },
  'ms to find a rare status in a day': {
    startedSince: month,
    startedUntil: month + dayMs,
    statuses: ['failed'],
  },
}

export const inspector: Case = {
  name: 'inspector',
  what: 'First pages of the routes that look over many runs, each asked once, in a ledger of so many runs.',
  isComparison: false,
  unit: 'page',
  params: [{ runs: 1_000_000 }],
  smokeParams: [{ runs: 300 }],
  own: ['tallystick-sqlite', 'tallystick-postgres'],
  peers: [],
  onPostgres: ['tallystick-postgres'],
  async measure(trial) {
    const { runs = 0 } = trial.params
    const { open, copy } = places[trial.subject as keyof typeof places](trial)
    const first = open()
    await drive(first, 1)
    await drive(first, drivenRuns, manualClock(oldDay))
    await refresh(first)
    await first.close()
    await copy(runs)
    const ledger = open()
    await drive(ledger, drivenRuns)
    await refresh(ledger)
    const server = createServer({ runtime: createRuntime({ ledger }), agents: [], authorize })
    const facts: Record<string, number> = {}
    const { value, ...took } = await metered(async () => {
      let answered = 0
      for (const [name, page] of Object.entries(pages)) {
        const as = name.includes('caller') ? 'ada' : 'boss'
        const begun = performance.now()
        const response = await server.fetch(
          new Request(`http://localhost${page}`, { headers: { authorization: as } }),
        )
        const text = await response.text()
        facts[name] = performance.now() - begun
        if (!response.ok) throw new Error(`${page} was answered with ${response.status}: ${text}`)
        answered++
      }
      for (const [name, filter] of Object.entries(lists)) {
        const begun = performance.now()
        for await (const _ of readRunSummaries(ledger, { ...filter, limit: 50 }));
        facts[name] = performance.now() - begun
        answered++
      }
      return answered
    })
    await ledger.close()
    return { units: value, ...took, facts }
  },
}

function authorize(request: Request): Principal {
  const isAda = request.headers.get('authorization') === 'ada'
  return isAda ? { name: 'ada', sees: { subjects: ['ada'] } } : { name: 'boss', sees: 'everything' }
}

/** Brings what is derived up to date, as the first list by a filter does. */
async function refresh(ledger: Ledger): Promise<void> {
  for await (const _ of readRunSummaries(ledger, { statuses: ['done'], limit: 1 })) break
}

interface Place {
  readonly open: () => Ledger & { close(): Promise<void> }
  /**
   * Copies the row of the one run, and what is derived from it, over the last month. The copies have no events: a page that
   * shows one would find it damaged, so only what looks over all of them is measured.
   */
  readonly copy: (runs: number) => Promise<void>
}

const places: Readonly<Record<'tallystick-sqlite' | 'tallystick-postgres', (trial: Trial) => Place>> = {
  'tallystick-sqlite'(trial) {
    const path = fileIn(trial, 'runs')
    return { open: () => sqliteLedger(path), copy: async (runs) => copyInFile(path, runs) }
  },
  'tallystick-postgres'({ postgres = '' }) {
    const schema = `inspector_${process.pid}_${Date.now()}`
    return {
      open: () => postgresLedger({ connectionString: postgres, schema }),
      copy: (runs) => copyInPostgres(postgres, schema, runs),
    }
  },
}

/** Drives runs to their end: each hundredth pays, which fails, is about a subject, and the next has a tag and meets a limit. */
async function drive(ledger: Ledger, count: number, clock?: Clock): Promise<void> {
  const look = testTool({ name: 'look', run: () => 'tea: 5 USD' })
  const pay = testTool({
    name: 'pay',
    run: () => {
      throw new Error('no money')
    },
  })
  for (let index = 1; index <= count; index++) {
    const name = index % 100 === 0 ? 'pay' : 'look'
    const model = scriptedModel([{ toolCalls: [{ name, input: {} }] }, { text: 'Five dollars.' }])
    const limits = index % 100 === 1 && count > 1 ? { maxTurns: 1, onLimit: 'stop' as const } : {}
    const agent = defineAgent({ name: 'clerk', instructions: 'Look.', model, tools: [look, pay], limits })
    const options = {
      ...(index % 100 === 0 && { subject: 'ada' }),
      ...(index % 100 === 1 && count > 1 && { tags: ['rare'] }),
    }
    await createRuntime({ ledger, ...(clock && { host: { clock } }) }).run(
      agent,
      `What is the price of tea ${index}?`,
      options,
    ).result
  }
}

const firstRun = 'select run_id from run order by pos limit 1'

/** The id of the copy n. */
const copyId = (padded: string): string => `'${sampleRunId(1).slice(0, -7)}' || ${padded}`

/** The statements that copy the run `id` as often as a table `series` has numbers `n`. */
function listCopies(runs: number, id: string, series: string, newId: string): readonly string[] {
  const step = Math.floor((30 * dayMs) / runs)
  const begun = `(${month} + n * ${step})`
  return [
    `insert into run (pos, run_id, head_seq, head_hash, epoch, ended_at, seal)
      select 100000 + n, ${newId}, head_seq, head_hash, epoch, ended_at, seal from ${series}, run where run.run_id = '${id}'`,
    `insert into run_summary select 100000 + n, ${newId}, seq, head_hash, status, agent, session_id, subject, is_child,
      ${begun}, ${begun} + took, reason, cost_nano, tokens, terms,
      replace(replace(replace(summary, '${id}', ${newId}), '"startedAt":' || started_at, '"startedAt":' || ${begun}),
        '"lastAt":' || last_at, '"lastAt":' || (${begun} + took)), notes
      from (select n, (n * 7919) % 60000 as took from ${series}) as copy, run_summary where run_id = '${id}'`,
    `insert into run_term select term, 100000 + n from ${series}, run_term where run_term.pos = (select pos from run where run_id = '${id}')`,
  ]
}

function copyInFile(path: string, runs: number): void {
  const database = new BetterSqlite3(path)
  database.pragma('synchronous = off')
  database.pragma('foreign_keys = off')
  const [{ run_id: id }] = database.prepare(firstRun).all() as [{ run_id: string }]
  const series = `(with recursive numbers(n) as (select 1 union all select n + 1 from numbers where n < ${runs}) select n from numbers) as series`
  const copies = listCopies(runs, id, series, copyId(`printf('%07x', n)`))
  database.exec(`begin; ${copies.join(';')};
    update sqlite_sequence set seq = ${runs} + 200000 where name = 'event';
    update projection set covered = ' ' || (${runs} + 200000);
    commit`)
  database.close()
}

async function copyInPostgres(connectionString: string, schema: string, runs: number): Promise<void> {
  const client = new Client({ connectionString })
  await client.connect()
  try {
    await client.query(`set search_path to ${schema}`)
    // Without triggers and foreign keys.
    await client.query('set session_replication_role to replica')
    const [row] = (await client.query<{ readonly run_id: string }>(firstRun)).rows
    const series = `generate_series(1::bigint, ${runs}) as series(n)`
    const newId = copyId(`lpad(to_hex(n), 7, '0')`)
    for (const copy of listCopies(runs, row!.run_id, series, newId)) {
      await client.query(copy)
    }
    await client.query(`select setval('event_pos', ${runs} + 200000)`)
    // As the server itself does after a while.
    await client.query('vacuum analyze run, run_summary, run_term')
  } finally {
    await client.end()
  }
}
