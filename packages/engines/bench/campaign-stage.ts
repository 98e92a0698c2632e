// The servers and the workers of a campaign.
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { startPostgres } from '../../ledger/test/support/postgres-process.ts'
import { findFreePort } from '../../../scripts/testing/free-port.ts'
import { lacksRedis, startRedis } from '../test/support/redis-process.ts'
import { findRestate, startRestate } from '../test/support/restate-process.ts'
import type { EngineName, Task } from './campaign-site.ts'

/** A server, and how it is killed and started again on the same data. */
export interface Server {
  readonly restart: () => Promise<void>
  readonly end: () => Promise<void>
}

export interface Servers {
  readonly task: Task
  readonly servers: Readonly<Record<string, Server>>
}

/** Starts the servers of an engine; a text says which one is missing. */
export async function startServers(engine: EngineName, folder: string): Promise<Servers | string> {
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
    const { ingress, admin, ...own } = await startRestate(program)
    const restate = { ingress, admin, port: await findFreePort() }
    return { task: { ...task, restate }, servers: { ...servers, Restate: own } }
  }
  return { task, servers }
}

/** Kills that are spread over all effects of a campaign. */
export interface KillPlan {
  readonly kills: number
  /** The number of effects to come. */
  readonly effects: number
  readonly random: () => number
}

/** The worker processes, and what becomes of them. */
export class Workers {
  readonly living = new Set<ChildProcess>()
  kills = 0
  effects = 0
  complaint = ''
  #isStopped = false
  readonly #doomed = new Set<ChildProcess>()
  readonly #task: Task
  readonly #plan: KillPlan

  constructor(task: Task, plan: KillPlan) {
    this.#task = task
    this.#plan = plan
  }

  async start(): Promise<void> {
    const script = fileURLToPath(new URL('campaign-worker.ts', import.meta.url))
    const child = spawn(process.execPath, [script, JSON.stringify(this.#task)], {
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    this.living.add(child)
    child.stderr.on('data', (chunk: Buffer) => (this.complaint = chunk.toString()))
    child.once('exit', (code) => {
      this.living.delete(child)
      // One that a kill did not end, nor SIGTERM, could not go on without a server: whoever operates it starts it again.
      if (code !== null && code !== 0 && !this.#isStopped) void sleep(500).then(() => this.start())
    })
    const lines = createInterface({ input: child.stdout })
    await new Promise<void>((resolve) => {
      lines.on('line', (line) => (line === 'ready' ? resolve() : this.#onEffect(child, line)))
      child.once('exit', () => resolve())
    })
  }

  /** Each kill comes at some moment in or after an effect. */
  #onEffect(child: ChildProcess, what: string): void {
    const { kills, effects, random } = this.#plan
    if (what === 'refused') return
    this.effects++
    const isDue = this.kills < (this.effects / effects) * kills * 1.3 - random()
    const isFit = what === 'charge' && isDue && !this.#doomed.has(child)
    if (!isFit || this.kills >= kills || this.#isStopped) return
    this.#doomed.add(child)
    this.kills++
    // The last one is not replaced: it is dead for good.
    const isForGood = this.kills === kills
    void sleep(random() * 140).then(() => {
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

  /** Kills all at once, and starts as many after what was due has come due. */
  async renewAll(): Promise<void> {
    const children = [...this.living]
    for (const child of children) child.kill('SIGKILL')
    await sleep(6_000)
    await Promise.all(children.map(() => this.start()))
  }

  async end(): Promise<void> {
    this.#isStopped = true
    const exits = [...this.living].map((child) => once(child, 'exit'))
    for (const child of this.living) child.kill('SIGKILL')
    await Promise.all(exits)
  }
}
