import { createRuntime, defineAgent, type Ledger } from '@tallystick/core'
import { readRunSummaries } from '@tallystick/ledger'
import { sqliteLedger } from '@tallystick/ledger/sqlite'
import { createServer, type Principal } from '@tallystick/server'
import { sampleRunId, scriptedModel, testTool } from '@tallystick/testkit'
import BetterSqlite3 from 'better-sqlite3'
import type { Case } from './case.ts'
import { metered } from './meter.ts'
import { fileIn } from './recorded-run.ts'

/** Runs that are driven after the others, so that pages show runs whose events are read. */
const drivenRuns = 200

const dayMs = 24 * 60 * 60 * 1000

/** The first pages that a reader of many runs asks for, each under the name of its figure. */
const pages: Readonly<Record<string, string>> = {
  'ms first page': '/runs',
  'ms by status and agent': '/runs?status=done&agent=clerk',
  'ms by a common tool': '/runs?tool=look&outcome=success',
  'ms by a rare outcome': '/runs?tool=pay&outcome=failed',
  'ms by a rare tag': '/runs?tag=rare',
  'ms by two that exclude each other': '/runs?tool=look&tag=rare',
  'ms since an hour': `/runs?since=${Date.now() - dayMs / 24}`,
  'ms of one subject': '/runs?subject=ada',
  'ms of a caller with one subject': '/runs',
  'ms due': '/due',
  'ms search by tool': '/search?tool=pay&outcome=failed',
  'ms stats of a month by day': `/stats?by=day&since=${Date.now() - 30 * dayMs}`,
  'ms stats of a month by hour': `/stats?by=hour&since=${Date.now() - 30 * dayMs}`,
}

export const inspector: Case = {
  name: 'inspector',
  what: 'First pages of the routes that look over many runs, each asked once, in a ledger of so many runs.',
  isComparison: false,
  unit: 'page',
  params: [{ runs: 1_000_000 }],
  smokeParams: [{ runs: 300 }],
  own: ['tallystick-sqlite'],
  peers: [],
  async measure(trial) {
    const { runs = 0 } = trial.params
    const path = fileIn(trial, 'runs')
    const first = sqliteLedger(path)
    await drive(first, 1)
    await refresh(first)
    await first.close()
    copyRun(path, runs)
    const ledger = sqliteLedger(path)
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

/** Drives runs to their end: each hundredth pays, which fails, is about a subject, and the next has a tag. */
async function drive(ledger: Ledger, count: number): Promise<void> {
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
    const agent = defineAgent({ name: 'clerk', instructions: 'Look.', model, tools: [look, pay] })
    const options = {
      ...(index % 100 === 0 && { subject: 'ada' }),
      ...(index % 100 === 1 && count > 1 && { tags: ['rare'] }),
    }
    await createRuntime({ ledger }).run(agent, `What is the price of tea ${index}?`, options).result
  }
}

/**
 * Copies the row of the one run of a file, and what is derived from it, over the last month. The copies have no events: a page that
 * shows one would find it damaged, so only what looks over all of them is measured.
 */
function copyRun(path: string, copies: number): void {
  const database = new BetterSqlite3(path)
  database.pragma('synchronous = off')
  database.pragma('foreign_keys = off')
  const [{ run_id: id }] = database.prepare('select run_id from run').all() as [{ run_id: string }]
  const step = Math.floor((30 * dayMs) / copies)
  const begun = Date.now() - 30 * dayMs
  const place = '100 + n'
  const newId = `'${sampleRunId(1).slice(0, -7)}' || printf('%07x', n)`
  const series = `with recursive series(n) as (select 1 union all select n + 1 from series where n < ${copies})`
  database.exec(`begin;
    ${series} insert into run (pos, run_id, head_seq, head_hash, epoch, ended_at, seal)
      select ${place}, ${newId}, head_seq, head_hash, epoch, ended_at, seal from series, run where run.run_id = '${id}';
    ${series} insert into run_summary select ${place}, ${newId}, seq, head_hash, status, agent, session_id, subject, is_child,
      ${begun} + n * ${step}, ${begun} + n * ${step} + abs(random() % 60000), reason, cost_nano, tokens, terms,
      replace(summary, '${id}', ${newId}), notes from series, run_summary where run_id = '${id}';
    ${series} insert into run_term select term, ${place} from series, run_term where run_term.pos = 1;
    update sqlite_sequence set seq = ${copies} + 1000 where name = 'event';
    update projection set covered = ' ' || (${copies} + 1000);
    commit`)
  database.close()
}
