// Drives runs in worker processes over an engine, and puts them to the test: `pnpm campaign engines`. At the end every run is done, no
// effect happened twice, and every record verifies. Its parts, of which each has servers of its own:
//   kills    workers are killed in the middle of a write, told to stop, frozen, and killed all at once; each server is killed
//   rounds   commands come, and wake, as the stretch ends in which their run came to rest
//   crashes  each client dies between what it puts on record and the wake; the sweep in the workers finds it
// Options:
//   --engine NAME  polling, polling-sqlite, pg-boss, bullmq or restate; all whose servers are there, if not given; may be repeated
//   --part NAME    all if not given, with --short only kills; may be repeated
//   --runs N       of kills; 150 if not given
//   --kills N      30 if not given
//   --rounds N     1,000 if not given
//   --crashes N    150 if not given
//   --workers N    4 if not given
//   --seed S       chooses whom and when; drawn and printed if not given
//   --short        50 runs, 5 kills, and neither a worker that is frozen nor a server that is killed; 60 rounds, 6 crashes
import { spawn } from 'node:child_process'
import { randomInt } from 'node:crypto'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { createRuntime, type RunId, type RuntimeEvent } from '@tallystick/core'
import { deriveRunId } from '@tallystick/core/vocabulary'
import { createClient } from '@tallystick/engines'
import { verifyRun } from '@tallystick/ledger'
import { seededRandom } from '@tallystick/testkit'
import { createCampaignAgent, listCalls, readDeeds } from './campaign-agent.ts'
import type { Act } from './campaign-client.ts'
import { type EngineName, engineNames, openSite, type Site, type Task } from './campaign-site.ts'
import { type Server, startServers, Workers } from './campaign-stage.ts'

const partNames = ['kills', 'rounds', 'crashes'] as const
type PartName = (typeof partNames)[number]

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    engine: { type: 'string', multiple: true, default: [] },
    part: { type: 'string', multiple: true, default: [] },
    runs: { type: 'string' },
    kills: { type: 'string' },
    rounds: { type: 'string' },
    crashes: { type: 'string' },
    workers: { type: 'string', default: '4' },
    seed: { type: 'string' },
    short: { type: 'boolean', default: false },
  },
})
if (positionals.join(' ') !== 'engines') throw new Error('There is one campaign: pnpm campaign engines.')
const isShort = values.short
const runCount = Number(values.runs ?? (isShort ? 50 : 150))
const killCount = Number(values.kills ?? (isShort ? 5 : 30))
const roundCount = Number(values.rounds ?? (isShort ? 60 : 1_000))
const crashCount = Number(values.crashes ?? (isShort ? 6 : 150))
const workerCount = Number(values.workers)
const seed = Number(values.seed ?? randomInt(2 ** 31))
const limitMs = isShort ? 180_000 : 900_000 + 2_000 * runCount
const random = seededRandom(seed)

/** What a client does, and how: at once, or as somebody else. */
type Deliver = (act: Act) => Promise<RunId>

interface Part {
  readonly tasks: readonly string[]
  readonly kills: number
  /** Happens once so much of all is done, from 0 to 1. */
  readonly events: (
    workers: Workers,
    servers: readonly [string, Server][],
  ) => readonly (readonly [number, string, () => Promise<void>])[]
  readonly hasSweep?: boolean
  /** How long a person thinks, in milliseconds. */
  readonly delayMs: () => number
  /** Which calls are settled; others wait for their deadline. */
  readonly settles: (event: RuntimeEvent & { readonly type: 'tool_deferred' }) => boolean
  readonly clientsDie?: boolean
}

const plain = { kills: 0, events: () => [], delayMs: () => 0 }
const hasNoDeadline: Part['settles'] = ({ deadlineAt }) => deadlineAt === undefined

/** The runs of the rounds, and the commands and starts that each run of the crashes needs. */
const [runsOfRounds, actsOfRun] = [20, 3]

const parts: Readonly<Record<PartName, Part>> = {
  kills: {
    ...plain,
    tasks: Array.from({ length: runCount }, (_, place) =>
      `Task ${place} ${place === 1 && !isShort ? 'long' : ''}`.trim(),
    ),
    kills: killCount,
    settles: hasNoDeadline,
    events: (workers, servers) => [
      [0.15, 'a worker is told to stop', () => workers.renewOne()],
      ...(isShort
        ? []
        : ([
            [0.25, 'a worker is frozen for 25 s', () => workers.freezeOne()],
            [0.35, 'all workers are killed, and there is none for 6 s', () => workers.renewAll()],
            ...servers.map(
              ([name, { restart }], place) => [0.5 + 0.2 * place, `${name} is killed`, restart] as const,
            ),
          ] as const)),
    ],
  },
  rounds: {
    ...plain,
    tasks: Array.from(
      { length: runsOfRounds },
      (_, place) => `Rounds ${Math.ceil(roundCount / runsOfRounds)} of run ${place}`,
    ),
    delayMs: () => random() * 30,
    settles: () => true,
  },
  crashes: {
    ...plain,
    tasks: Array.from({ length: Math.ceil(crashCount / actsOfRun) }, (_, place) => `Task ${place}`),
    hasSweep: true,
    settles: hasNoDeadline,
    clientsDie: true,
  },
}

/** A client that dies before it wakes the run. Starting one takes a second of processor time, so few do at once. */
function dieAfter(task: Task): Deliver {
  const script = fileURLToPath(new URL('campaign-client.ts', import.meta.url))
  const lanes: Promise<unknown>[] = Array.from({ length: 3 }, () => Promise.resolve())
  return async (act) => {
    const lane = lanes.shift() ?? Promise.resolve()
    const died = lane.then(async () => {
      const child = spawn(process.execPath, [script, JSON.stringify(task), JSON.stringify(act)], {
        stdio: ['ignore', 'inherit', 'inherit'],
      })
      const [, signal] = (await once(child, 'exit')) as [number | null, string | null]
      if (signal !== 'SIGKILL') throw new Error('A client did not die.')
    })
    lanes.push(died.catch(() => undefined))
    await died
    return 'runId' in act ? (act.runId as RunId) : deriveRunId(act.key)
  }
}

/** The person, and the service that settles: reads what happens, and answers, until all runs are done. */
class Person {
  readonly done = new Set<string>()
  readonly #site: Site
  readonly #deliver: Deliver
  readonly #part: Part
  #cursor: string | undefined
  #looking: Promise<void> | undefined
  #isAsked = false

  constructor(site: Site, deliver: Deliver, part: Part) {
    this.#site = site
    this.#deliver = deliver
    this.#part = part
  }

  /** Looks at what is new. What fails, since a server is away, is tried again at the next look. */
  look(): void {
    this.#isAsked = this.#looking !== undefined
    this.#looking ??= this.#readNew()
      .catch(() => undefined)
      .finally(() => {
        this.#looking = undefined
        if (this.#isAsked) this.look()
      })
  }

  async #readNew(): Promise<void> {
    for await (const { event, cursor } of this.#site.ledger.tail(this.#cursor)) {
      this.#cursor = cursor
      const act = this.#answer(event)
      if (act) void this.#give(act)
    }
  }

  async #give(act: Act): Promise<void> {
    await sleep(this.#part.delayMs())
    for (;;) {
      try {
        await this.#deliver(act)
        return
      } catch {
        await sleep(500)
      }
    }
  }

  #answer(event: RuntimeEvent): Act | undefined {
    const { runId, toolCallId = '' } = event
    if (event.type === 'run_finished') this.done.add(runId)
    if (event.type === 'approval_requested') {
      const { attempt } = event
      const command = { type: 'approve', toolCallId, attempt, by: 'ada' } as const
      return { runId, key: `${toolCallId} ${attempt}`, command }
    }
    if (event.type !== 'tool_deferred' || !this.#part.settles(event)) return undefined
    const content = [{ type: 'text', text: 'It came.' }] as const
    return { runId, key: toolCallId, command: { type: 'settle', toolCallId, outcome: 'success', content } }
  }
}

async function playPart(engine: EngineName, name: PartName): Promise<boolean> {
  const part = parts[name]
  const { tasks, kills } = part
  const folder = mkdtempSync(join(tmpdir(), 'tallystick-campaign-'))
  const started = await startServers(engine, folder)
  if (typeof started === 'string') {
    console.log(`${engine.padEnd(14)} left out: ${started}`)
    return process.env['TALLYSTICK_ENGINES'] !== 'all'
  }
  const { servers } = started
  const task: Task = { ...started.task, hasSweep: part.hasSweep ?? false }
  const effects = tasks.flatMap(listCalls).length
  const workers = new Workers(task, { kills, effects, random })
  const begun = performance.now()
  const seconds = (): number => Math.round((performance.now() - begun) / 1_000)
  const show = (text: string): void => console.log(`${engine.padEnd(14)} ${name} ${seconds()} s: ${text}`)
  const site = await openSite(task)
  try {
    const agent = createCampaignAgent(task.world)
    const runtime = createRuntime({ ledger: site.ledger, agents: [agent] })
    const client = createClient({ runtime, engine: site.engine })
    const deliverHere: Deliver = async (act) => {
      if ('runId' in act) {
        await client.post(act.runId, act.command, { key: act.key })
        return act.runId as RunId
      }
      const rounds = listCalls(act.task).length + 5
      const limits = { maxTurns: rounds, maxToolCalls: rounds }
      return await client.enqueue(agent, act.task, { idempotencyKey: act.key, limits })
    }
    const deliver = part.clientsDie ? dieAfter(task) : deliverHere
    for (let index = 0; index < workerCount; index++) await workers.start()
    const person = new Person(site, deliver, part)
    const hints = site.ledger.changes().subscribe({ next: () => person.look(), error: () => undefined })
    const starts = tasks.map((text) => ({ key: `campaign ${text}`, task: text }))
    const runs: RunId[] = []
    const starting = part.clientsDie
      ? Promise.all(starts.map(deliver)).then((ids) => void runs.push(...ids))
      : (async () => {
          for (const start of starts) runs.push(await deliver(start))
        })()
    const events = [...part.events(workers, Object.entries(servers))]
    const under: Promise<void>[] = [starting]
    let shown = 0
    while (person.done.size < tasks.length && performance.now() - begun < limitMs) {
      person.look()
      const progress = Math.max(person.done.size / tasks.length, workers.effects / effects - 0.1)
      const next = events[0]
      if (next && progress >= next[0]) {
        events.shift()
        show(next[1])
        under.push(next[2]())
      }
      if (seconds() >= shown + 10) {
        shown = seconds()
        show(
          `${person.done.size} of ${tasks.length} done, ${workers.effects} effects, ${workers.kills} kills, ${workers.living.size} workers`,
        )
      }
      await sleep(200)
    }
    hints.unsubscribe()
    await Promise.all(under)
    const took = seconds()
    await workers.end()
    const faults = await judge(site, task, { runs, effects })
    const late = (kind: keyof Late): string => {
      const all = faults.late[kind].sort((a, b) => a - b)
      return all.length === 0
        ? ''
        : `; ${kind} late, median and worst: ${all[all.length >> 1]} ms, ${all.at(-1)} ms`
    }
    const deaths = part.clientsDie ? `, ${tasks.length * actsOfRun} clients that died before their wake` : ''
    show(
      `${person.done.size} of ${tasks.length} runs done in ${took} s, ${workers.kills} kills${deaths}, ${faults.effects} effects, ${faults.twice} of them twice${late('deadline')}${late('retry-after')}`,
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
  readonly 'retry-after': number[]
}

interface Verdict {
  readonly found: readonly string[]
  readonly late: Late
  readonly effects: number
  readonly twice: number
}

/** Looks at the outside world, and at each record. */
async function judge(
  { ledger }: Site,
  { world }: Task,
  { runs, effects: expected }: { readonly runs: readonly RunId[]; readonly effects: number },
): Promise<Verdict> {
  const found: string[] = []
  const late: Late = { deadline: [], 'retry-after': [] }
  const deeds = readDeeds(world).filter(({ what }) => what !== 'refused')
  const counts = new Map<string, number>()
  for (const { key } of deeds) counts.set(key, (counts.get(key) ?? 0) + 1)
  const twice = [...counts].filter(([, count]) => count > 1)
  for (const [key, count] of twice) found.push(`${key} had its effect ${count} times`)
  if (counts.size !== expected) found.push(`${counts.size} effects, of ${expected}`)
  for (const runId of runs) {
    const events = await Array.fromAsync(ledger.read(runId))
    const last = events.at(-1)
    if (last?.type !== 'run_finished' || last.reason !== 'answered')
      found.push(`run ${runId} ended with ${last?.type === 'run_finished' ? last.reason : last?.type}`)
    const { ok, broken } = await verifyRun(ledger, runId)
    if (!ok) found.push(`run ${runId} does not verify: ${JSON.stringify(broken)}`)
    measureLate(events, late)
  }
  return { found, late, effects: deeds.length, twice: twice.length }
}

function measureLate(events: readonly RuntimeEvent[], late: Late): void {
  for (const [place, event] of events.entries()) {
    const after = events.slice(place + 1)
    if (event.type === 'tool_deferred' && event.deadlineAt !== undefined) {
      const result = after.find(
        ({ type, toolCallId }) => type === 'tool_result' && toolCallId === event.toolCallId,
      )
      if (result && result.at >= event.deadlineAt) late.deadline.push(result.at - event.deadlineAt)
    }
    if (event.type === 'model_stream_failed' && event.retryAt !== undefined) {
      const again = after.find(({ type }) => type === 'model_call_started')
      if (again) late['retry-after'].push(again.at - event.retryAt)
    }
  }
}

process.env['NODE_COMPILE_CACHE'] ??= join(tmpdir(), 'tallystick-compile-cache')
const isAsked = (asked: readonly string[], name: string): boolean =>
  asked.length === 0 || asked.includes(name)
const played = engineNames.filter((name) => isAsked(values.engine, name))
const askedParts = isShort && values.part.length === 0 ? ['kills'] : values.part
const playedParts = partNames.filter((name) => isAsked(askedParts, name))
if (played.length === 0) throw new Error(`There are the engines ${engineNames.join(', ')}.`)
if (playedParts.length === 0) throw new Error(`There are the parts ${partNames.join(', ')}.`)
console.log(`seed ${seed}`)
let hasFailed = false
for (const engine of played)
  for (const part of playedParts) if (!(await playPart(engine, part))) hasFailed = true
process.exit(hasFailed ? 1 : 0)
