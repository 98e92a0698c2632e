// Drives runs in worker processes over an engine, and kills, stops and restarts what it can: `pnpm campaign engines`. At the end every
// run is done, no effect happened twice, and every record verifies. Options:
//   --engine NAME  polling, polling-sqlite, pg-boss, bullmq or restate; all whose servers are there, if not given; may be repeated
//   --runs N       150 if not given
//   --kills N      workers killed in the middle of a write; 30 if not given
//   --workers N    4 if not given
//   --seed S       chooses whom and when; drawn and printed if not given
//   --short        50 runs, 5 kills, and neither a worker that is stopped nor a server that is restarted
import { type ChildProcess, spawn } from 'node:child_process'
import { randomInt } from 'node:crypto'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { createRuntime, type RunId, type RuntimeEvent } from '@tallystick/core'
import { createClient, type EngineClient } from '@tallystick/engines'
import { verifyRun } from '@tallystick/ledger'
import { seededRandom } from '@tallystick/testkit'
import { startPostgres } from '../../ledger/test/support/postgres-process.ts'
import { findFreePort } from '../test/support/free-port.ts'
import { lacksRedis, startRedis } from '../test/support/redis-process.ts'
import { findRestate, startRestate } from '../test/support/restate-process.ts'
import { chargesOfRun, createCampaignAgent, deedsOfRun, readDeeds } from './campaign-agent.ts'
import { type EngineName, engineNames, openSite, type Site, type Task } from './campaign-site.ts'

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    engine: { type: 'string', multiple: true, default: [] },
    runs: { type: 'string' },
    kills: { type: 'string' },
    workers: { type: 'string', default: '4' },
    seed: { type: 'string' },
    short: { type: 'boolean', default: false },
  },
})
if (positionals.join(' ') !== 'engines') throw new Error('There is one campaign: pnpm campaign engines.')
const isShort = values.short
const runCount = Number(values.runs ?? (isShort ? 50 : 150))
const killCount = Number(values.kills ?? (isShort ? 5 : 30))
const workerCount = Number(values.workers)
const seed = Number(values.seed ?? randomInt(2 ** 31))
const limitMs = isShort ? 180_000 : 900_000

/** A server, and what is done to it in the middle of the campaign. */
interface Server {
  readonly restart?: () => Promise<void>
  readonly end: () => Promise<void>
}

/** The servers of an engine; a text says which one is missing. */
async function startServers(
  engine: EngineName,
  folder: string,
): Promise<{ readonly task: Task; readonly servers: Readonly<Record<string, Server>> } | string> {
  const world = join(folder, 'world')
  if (engine === 'polling-sqlite')
    return { task: { engine, world, sqlite: join(folder, 'runs.db') }, servers: {} }
  if (engine === 'bullmq' && lacksRedis) return 'no server of Redis'
  const program = engine === 'restate' ? findRestate() : undefined
  if (engine === 'restate' && program === undefined) return 'no server of Restate'
  const postgres = await startPostgres(['fsync=off', 'full_page_writes=off'])
  if ('unavailable' in postgres.server) {
    await postgres.end()
    return postgres.server.unavailable
  }
  const restart = async (one: { kill(): Promise<void>; start(): Promise<void> }): Promise<void> => {
    await one.kill()
    await sleep(1_000)
    await one.start()
  }
  const task = { engine, world, postgres: postgres.server.connectionString }
  const servers = { Postgres: { restart: () => restart(postgres), end: () => postgres.end() } }
  if (engine === 'bullmq') {
    const redis = await startRedis()
    const own = { restart: () => restart(redis), end: async () => redis[Symbol.asyncDispose]() }
    return { task: { ...task, redis: redis.port }, servers: { ...servers, Redis: own } }
  }
  if (program !== undefined) {
    const { ingress, admin, end } = await startRestate(program)
    const restate = { ingress, admin, url: await balance() }
    return { task: { ...task, restate }, servers: { ...servers, Restate: { end } } }
  }
  return { task, servers }
}

/** The ports of the workers that Restate can reach. */
const ports: number[] = []

/** One address for all workers of Restate, since it pins what it begins to the address of the worker. */
async function balance(): Promise<string> {
  let next = 0
  const server = createServer((socket) => {
    const worker = connect({ host: '127.0.0.1', port: ports[next++ % ports.length] ?? 0 })
    const end = (one: Socket, other: Socket): void => {
      one.on('error', () => other.destroy()).on('close', () => other.destroy())
      one.pipe(other)
    }
    end(socket, worker)
    end(worker, socket)
  }).listen(0, '127.0.0.1')
  server.unref()
  await once(server, 'listening')
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

/** The worker processes, and what becomes of them. */
class Workers {
  readonly living = new Set<ChildProcess>()
  kills = 0
  deeds = 0
  complaint = ''
  #isStopped = false
  readonly #doomed = new Set<ChildProcess>()
  readonly #task: Task
  readonly #random = seededRandom(seed)

  constructor(task: Task) {
    this.#task = task
  }

  async start(): Promise<void> {
    const port = this.#task.engine === 'restate' ? await findFreePort() : 0
    const script = fileURLToPath(new URL('campaign-worker.ts', import.meta.url))
    const child = spawn(process.execPath, [script, JSON.stringify({ ...this.#task, port })], {
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    this.living.add(child)
    // Restate looks at the first one before that one is ready.
    if (port !== 0 && ports.length === 0) ports.push(port)
    child.stderr.on('data', (chunk: Buffer) => (this.complaint = chunk.toString()))
    child.once('exit', (code) => {
      this.living.delete(child)
      if (ports.includes(port)) ports.splice(ports.indexOf(port), 1)
      // One that a kill did not end, nor SIGTERM, could not go on without a server: whoever operates it starts it again.
      if (code !== null && code !== 0 && !this.#isStopped) void sleep(500).then(() => this.start())
    })
    const lines = createInterface({ input: child.stdout })
    const ready = new Promise<void>((resolve) => {
      lines.on('line', (line) => {
        if (line === 'ready') {
          if (port !== 0 && !ports.includes(port)) ports.push(port)
          resolve()
        } else this.#onDeed(child, line)
      })
      child.once('exit', () => resolve())
    })
    await ready
  }

  /** Kills are spread over all effects, each at some moment in or after one. */
  #onDeed(child: ChildProcess, what: string): void {
    this.deeds++
    const isDue = this.kills < (this.deeds / (runCount * deedsOfRun)) * killCount * 1.3 - this.#random()
    const isFit = what === 'charge' && isDue && !this.#doomed.has(child)
    if (!isFit || this.kills >= killCount || this.#isStopped) return
    this.#doomed.add(child)
    this.kills++
    // The last one is not replaced: it is dead for good.
    const isForGood = this.kills === killCount
    void sleep(this.#random() * 140).then(() => {
      child.kill('SIGKILL')
      return isForGood || this.#isStopped ? undefined : this.start()
    })
  }

  /** Tells one to stop, which it has to do, and starts another one. */
  async renewOne(): Promise<void> {
    const child = [...this.living].find(({ exitCode, signalCode }) => (exitCode ?? signalCode) === null)
    if (child === undefined) return
    const exit = once(child, 'exit')
    child.kill('SIGTERM')
    await Promise.all([exit, this.start()])
  }

  /** Stops one until others have taken over its runs. */
  async freezeOne(): Promise<void> {
    const [child] = this.living
    child?.kill('SIGSTOP')
    await sleep(25_000)
    child?.kill('SIGCONT')
  }

  async end(): Promise<void> {
    this.#isStopped = true
    const exits = [...this.living].map((child) => once(child, 'exit'))
    for (const child of this.living) child.kill('SIGKILL')
    await Promise.all(exits)
  }
}

/** The person, and the service that settles: reads what happens, and answers, until all runs are done. */
class Person {
  readonly done = new Set<string>()
  readonly #waiting: (() => Promise<unknown>)[] = []
  readonly #site: Site
  readonly #client: EngineClient
  #cursor: string | undefined

  constructor(site: Site, client: EngineClient) {
    this.#site = site
    this.#client = client
  }

  /** What fails, since a server is away, is tried again at the next look. */
  async look(): Promise<void> {
    for await (const { event, cursor } of this.#site.ledger.tail(this.#cursor)) {
      this.#answer(event)
      this.#cursor = cursor
    }
    for (let next = this.#waiting[0]; next; next = this.#waiting[0]) {
      await next()
      this.#waiting.shift()
    }
  }

  #answer(event: RuntimeEvent): void {
    const { runId, toolCallId = '' } = event
    if (event.type === 'run_finished') this.done.add(runId)
    if (event.type === 'approval_requested') {
      const key = `${toolCallId} ${event.attempt}`
      const approve = { type: 'approve', toolCallId, attempt: event.attempt, by: 'ada' } as const
      this.#waiting.push(() => this.#client.post(runId, approve, { key }))
    }
    if (event.type === 'tool_deferred' && event.deadlineAt === undefined) {
      const content = [{ type: 'text', text: 'It came.' }] as const
      const settle = { type: 'settle', toolCallId, outcome: 'success', content } as const
      this.#waiting.push(() => this.#client.post(runId, settle, { key: toolCallId }))
    }
  }
}

async function playCampaign(engine: EngineName): Promise<boolean> {
  const folder = mkdtempSync(join(tmpdir(), 'tallystick-campaign-'))
  const started = await startServers(engine, folder)
  if (typeof started === 'string') {
    console.log(`${engine.padEnd(14)} left out: ${started}`)
    return process.env['TALLYSTICK_ENGINES'] !== 'all'
  }
  const { task, servers } = started
  const workers = new Workers(task)
  const begun = performance.now()
  const seconds = (): number => Math.round((performance.now() - begun) / 1_000)
  const show = (text: string): void => console.log(`${engine.padEnd(14)} ${seconds()} s: ${text}`)
  const site = await openSite(task)
  try {
    const agent = createCampaignAgent(task.world)
    const runtime = createRuntime({ ledger: site.ledger, agents: [agent] })
    const client = createClient({ runtime, engine: site.engine })
    const runs: RunId[] = []
    for (let index = 0; index < workerCount; index++) await workers.start()
    for (let index = 0; index < runCount; index++) {
      const word = index === 1 && !isShort ? 'long' : ''
      const idempotencyKey = `campaign ${index}`
      runs.push(await client.enqueue(agent, `Task ${index} ${word}`.trim(), { idempotencyKey }))
    }
    const person = new Person(site, client)
    const events = [
      [0.15, 'a worker is told to stop', () => workers.renewOne()],
      ...(isShort ? [] : [[0.3, 'a worker is frozen for 25 s', () => workers.freezeOne()] as const]),
      ...Object.entries(isShort ? {} : servers).flatMap(([name, { restart }], place) =>
        restart ? [[0.45 + 0.2 * place, `${name} is restarted`, restart] as const] : [],
      ),
    ] as [number, string, () => Promise<void>][]
    const under: Promise<void>[] = []
    let shown = 0
    while (person.done.size < runCount && performance.now() - begun < limitMs) {
      await person.look().catch(() => undefined)
      const progress = Math.max(person.done.size / runCount, workers.deeds / (runCount * deedsOfRun) - 0.1)
      const next = events[0]
      if (next && progress >= next[0]) {
        events.shift()
        show(next[1])
        under.push(next[2]())
      }
      if (seconds() >= shown + 10) {
        shown = seconds()
        show(
          `${person.done.size} of ${runCount} done, ${workers.kills} kills, ${workers.living.size} workers`,
        )
      }
      await sleep(200)
    }
    await Promise.all(under)
    const took = seconds()
    await workers.end()
    const faults = await judge(site, task, runs)
    const late = (kind: keyof Late): string => {
      const all = faults.late[kind].sort((a, b) => a - b)
      return `${all[all.length >> 1]} ms, ${all.at(-1)} ms`
    }
    show(
      `${person.done.size} of ${runCount} runs done in ${took} s, ${workers.kills} kills, ${faults.effects} effects; late, median and worst: deadline ${late('deadline')}, retry-after ${late('retry')}`,
    )
    for (const fault of faults.found.slice(0, 20)) show(`FAILED ${fault}`)
    if (faults.found.length > 0 && workers.complaint) show(`a worker said: ${workers.complaint.trim()}`)
    return faults.found.length === 0
  } finally {
    await workers.end()
    await site.close()
    for (const { end } of Object.values(servers)) await end()
    rmSync(folder, { recursive: true, force: true })
  }
}

interface Late {
  readonly deadline: number[]
  readonly retry: number[]
}

/** Looks at the outside world, and at each record. */
async function judge(
  { ledger }: Site,
  { world }: Task,
  runs: readonly RunId[],
): Promise<{ readonly found: readonly string[]; readonly late: Late; readonly effects: number }> {
  const found: string[] = []
  const late: Late = { deadline: [], retry: [] }
  const deeds = readDeeds(world).filter(({ what }) => what !== 'refused')
  const counts = new Map<string, number>()
  for (const { key } of deeds) counts.set(key, (counts.get(key) ?? 0) + 1)
  for (const [key, count] of counts) if (count > 1) found.push(`${key} had its effect ${count} times`)
  const charges = deeds.filter(({ what }) => what === 'charge').length
  if (charges !== runs.length * chargesOfRun)
    found.push(`${charges} charges, of ${runs.length * chargesOfRun}`)
  for (const runId of runs) {
    const events = await Array.fromAsync(ledger.read(runId))
    const last = events.at(-1)
    if (last?.type !== 'run_finished' || last.reason !== 'answered')
      found.push(`run ${runId} ended with ${last?.type === 'run_finished' ? last.reason : last?.type}`)
    const { ok, broken } = await verifyRun(ledger, runId)
    if (!ok) found.push(`run ${runId} does not verify: ${JSON.stringify(broken)}`)
    measureLate(events, late)
  }
  return { found, late, effects: deeds.length }
}

function measureLate(events: readonly RuntimeEvent[], late: Late): void {
  for (const [place, event] of events.entries()) {
    const after = events.slice(place + 1)
    if (event.type === 'tool_deferred' && event.deadlineAt !== undefined) {
      const result = after.find(
        ({ type, toolCallId }) => type === 'tool_result' && toolCallId === event.toolCallId,
      )
      if (result) late.deadline.push(result.at - event.deadlineAt)
    }
    if (event.type === 'model_stream_failed' && event.retryAt !== undefined) {
      const again = after.find(({ type }) => type === 'model_call_started')
      if (again) late.retry.push(again.at - event.retryAt)
    }
  }
}

process.env['NODE_COMPILE_CACHE'] ??= join(tmpdir(), 'tallystick-compile-cache')
const played = engineNames.filter((name) => values.engine.length === 0 || values.engine.includes(name))
if (played.length === 0) throw new Error(`There are the engines ${engineNames.join(', ')}.`)
console.log(`seed ${seed}`)
let hasFailed = false
for (const engine of played) if (!(await playCampaign(engine))) hasFailed = true
process.exit(hasFailed ? 1 : 0)
