// What runs on engines cost, on a Postgres of its own: `pnpm bench:engines`. Prints
//   - runs and turns a second over 1, 2 and 4 workers, whose models answer at once;
//   - rows, transactions and bytes of log a turn whose model streams 60 deltas, 20 a second;
//   - how long a look at what is due takes with 100 and with 100,000 runs that wait.
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { createRuntime, defineAgent, type Model } from '@tallystick/core'
import { createClient, startWorker } from '@tallystick/engines'
import { postgresLedger } from '@tallystick/ledger/postgres'
import { scriptedModel, testTool } from '@tallystick/testkit'
import { Client } from 'pg'
import { Observable } from 'rxjs'
import { startPostgres } from '../../ledger/test/support/postgres-process.ts'
import { type EngineName, openSite, type Task } from './campaign-site.ts'

const [turns, deltas, deltaMs] = [4, 60, 50]
const noted = testTool({ name: 'note', effect: 'write' })

/** Calls a tool in each turn but the last; with `streams`, it says as much as a real model, as slowly. */
function createAgent(streams: boolean) {
  const model: Model = {
    ...scriptedModel([]),
    stream(request, context) {
      const turn = request.messages.filter(({ role }) => role === 'assistant').length
      if (streams) return streamSlowly()
      const reply = turn < turns - 1 ? { toolCalls: [{ name: 'note', input: { turn } }] } : { text: 'Done.' }
      return scriptedModel([reply]).stream(request, context)
    },
  }
  return defineAgent({ name: 'bench', instructions: 'Work.', model, tools: [noted] })
}

function streamSlowly(): ReturnType<Model['stream']> {
  return new Observable((subscriber) => {
    const words = Array.from({ length: deltas }, (_, place) => `word${place} and `)
    subscriber.next({ type: 'model_started', providerMessageId: 'm', servedModel: 'scripted' })
    let place = 0
    const timer = setInterval(() => {
      const text = words[place++]
      if (text !== undefined) return subscriber.next({ type: 'model_text', part: 0, text })
      clearInterval(timer)
      const parts = [{ part: 0, type: 'text', text: words.join('') }] as const
      subscriber.next({ type: 'model_finished', stopReason: 'end', parts: [...parts] })
      subscriber.complete()
    }, deltaMs)
    return () => clearInterval(timer)
  })
}

async function work(task: Task): Promise<void> {
  const { ledger, engine } = await openSite(task)
  const runtime = createRuntime({ ledger, agents: [createAgent(false)] })
  await startWorker({ runtime, engine, concurrency: 20 })
  process.send?.('ready')
}

async function measureWorkers(postgres: string, engine: EngineName, workers: number): Promise<void> {
  const task: Task = { engine, world: '', postgres }
  const script = fileURLToPath(import.meta.url)
  const site = await openSite(task)
  const agent = createAgent(false)
  const client = createClient({
    runtime: createRuntime({ ledger: site.ledger, agents: [agent] }),
    engine: site.engine,
  })
  const count = 200
  for (let index = 0; index < count; index++) await client.enqueue(agent, `Run ${index}.`)
  const begun = performance.now()
  const children = Array.from({ length: workers }, () => fork(script, [JSON.stringify(task)]))
  await Promise.all(children.map((child) => once(child, 'message')))
  const ready = performance.now()
  const done = async (): Promise<number> =>
    (await Array.fromAsync(site.ledger.find({ types: ['run_finished'] }))).length
  const before = measured
  while ((await done()) - before < count) await new Promise((resolve) => setTimeout(resolve, 100))
  measured += count
  const seconds = (performance.now() - ready) / 1_000
  console.log(
    `${engine}, ${workers} workers: ${(count / seconds).toFixed(1)} runs/s, ${((count * turns) / seconds).toFixed(1)} turns/s (workers up in ${Math.round(ready - begun)} ms)`,
  )
  for (const child of children) {
    const exit = once(child, 'exit')
    child.kill('SIGKILL')
    await exit
  }
  await site.close()
}
/** Runs that ended in earlier measurements. */
let measured = 0

async function measureTurn(postgres: string, deltaDelayMs: number): Promise<void> {
  const schema = `turn_${deltaDelayMs}`
  const ledger = postgresLedger({ connectionString: postgres, schema, deltaDelayMs })
  const agent = createAgent(true)
  const runtime = createRuntime({ ledger, agents: [agent] })
  const pg = new Client({ connectionString: postgres })
  await pg.connect()
  const read = async () => {
    const { rows } = await pg.query<{ commits: string; lsn: string; rows: string }>(
      `select pg_stat_force_next_flush()::text as f, (select xact_commit from pg_stat_database where datname = current_database()) as commits,
        pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0') as lsn,
        (select count(*) from ${schema}.event) as rows`,
    )
    const [row] = rows
    return { commits: Number(row?.commits), lsn: Number(row?.lsn), rows: Number(row?.rows) }
  }
  await Array.fromAsync(ledger.runs({ limit: 1 }))
  const count = 10
  const before = await read()
  await Promise.all(Array.from({ length: count }, () => runtime.run(agent, 'Talk.').result))
  await new Promise((resolve) => setTimeout(resolve, 1_500))
  const after = await read()
  const per = (of: 'commits' | 'lsn' | 'rows'): number => Math.round((after[of] - before[of]) / count)
  console.log(
    `a turn of ${deltas} deltas, ${1_000 / deltaMs} a second, deltaDelayMs ${deltaDelayMs}: ${per('rows')} rows, ${per('commits')} transactions, ${(per('lsn') / 1_000).toFixed(1)} kB of log`,
  )
  await pg.end()
  await ledger.close()
}

async function measureLook(postgres: string, waiting: number): Promise<void> {
  const schema = `due_${waiting}`
  const ledger = postgresLedger({ connectionString: postgres, schema })
  await Array.fromAsync(ledger.runs({ limit: 1 }))
  const pg = new Client({ connectionString: postgres })
  await pg.connect()
  await pg.query(`insert into ${schema}.run (pos, run_id, head_seq, head_hash, epoch, seal, due_at)
    select 1000 + n, 'run ' || n, 1, 'x', 1, 'x', case when n % 2 = 0 then 9e12 + n end from generate_series(1, ${waiting}) as n`)
  await pg.query(`vacuum analyze ${schema}.run`)
  await pg.end()
  const times: number[] = []
  for (let look = 0; look < 200; look++) {
    const begun = performance.now()
    await Array.fromAsync(ledger.due({ before: Date.now() }))
    times.push(performance.now() - begun)
  }
  times.sort((a, b) => a - b)
  console.log(
    `a look, ${waiting.toLocaleString('en')} runs wait: ${times[100]?.toFixed(2)} ms, worst of 200 ${times.at(-1)?.toFixed(1)} ms`,
  )
  await ledger.close()
}

if (process.send) await work(JSON.parse(process.argv[2] ?? '') as Task)
else {
  const { server, end } = await startPostgres([])
  if ('unavailable' in server) throw new Error(server.unavailable)
  const { connectionString } = server
  for (const waiting of [100, 100_000]) await measureLook(connectionString, waiting)
  for (const deltaDelayMs of [20, 200, 1_000]) await measureTurn(connectionString, deltaDelayMs)
  for (const engine of ['polling', 'pg-boss'] as const)
    for (const workers of [1, 2, 4]) await measureWorkers(connectionString, engine, workers)
  await end()
}
