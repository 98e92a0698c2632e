import {
  type Agent,
  type CommandAcknowledgement,
  ConfigurationError,
  createRuntime,
  type Ledger,
  LedgerConflictError,
  LedgerUnavailableError,
  type Message,
  type Prices,
  RunNotFoundError,
  type Run,
  type RunId,
  type Runtime,
  type Tool,
  type RunOptions,
  type ScheduleOptions,
  type RunState,
  type RuntimeEvent,
} from '@tallystick/core'
import { evolve, findCall, listPendingApprovals } from '@tallystick/core/machine'
import {
  type EventOf,
  extractRunId,
  isAfterEnd,
  type Json,
  type JsonObject,
  type OutsideCommand,
  type Random,
  type StandingOptions,
  toCanonicalJson,
} from '@tallystick/core/vocabulary'
import { findOpenRoot } from '@tallystick/core/internal'
import { checkBudgets } from '../judges/budgets.ts'
import { checkLaws } from '../judges/laws.ts'
import {
  findSharedSeq,
  isRefusalTrue,
  judgeApprovals,
  judgeFirings,
  judgeSessions,
  judgeStarts,
  type SentDecision,
} from './fleet-judges.ts'
import { type FleetPlan, type PlannedFault } from './fleet-plan.ts'
import { Books, createSite, type Site } from './site.ts'
import { Connection, SimulatedStore } from './store.ts'
import { type Actor, World, worldStart } from './world.ts'

/** How a run of a fleet begins. */
export interface FleetStart {
  /** The name of one of the agents. */
  readonly agent: string
  readonly input: string
  readonly options?: Omit<RunOptions, 'sessionId' | 'idempotencyKey' | 'signal' | 'hooks'> & {
    readonly context?: unknown
  }
  /** A schedule starts it, so much later, in milliseconds. */
  readonly afterMs?: number
}

/** What drives the runs of a site that have something to do. */
export interface SiteWorker {
  /** A command for a run is on record, or its time has come. */
  wake?(runId: RunId): Promise<void>
  stop(graceMs: number): Promise<void>
}

/** A site with its runtime, for the code that drives its runs. */
export interface WorkingSite extends Site {
  readonly runtime: Runtime
  /** The store that it works on. */
  readonly store: string
  readonly world: World
  readonly actor: Actor
}

/** The parts of a fleet: processes that drive the runs of one or two stores, and people. */
export interface Fleet {
  /** The agents of a process: made anew in each, as its code would. They get the tools of that process. */
  readonly agents: (site: Site, tools: readonly Tool[]) => readonly Agent<unknown>[]
  /** The tools of a process. Each takes its time in the simulated world, and its starts are held against the record. */
  readonly tools?: ((site: Site) => readonly Tool[]) | undefined
  /** How the run of this ordinal begins. */
  readonly start: (random: Random, ordinal: number) => FleetStart
  /** Drives what is due on a site. Default: a loop that asks the ledger every second, and at each hint. */
  readonly work?: ((site: WorkingSite) => SiteWorker) | undefined
  readonly prices?: Prices | undefined
  /** Makes the context of a run that was started with one. */
  readonly contextOf?: ((run: { readonly owner?: string | undefined }) => unknown) | undefined
  /** The changed input of an approver; without it nobody changes one. */
  readonly changeInput?: ((name: string) => JsonObject | undefined) | undefined
  /** True for an error with which code of the agents fails on purpose. */
  readonly expects?: ((error: unknown) => boolean) | undefined
}

/** A law that was broken in a world. */
export interface FleetViolation {
  /** 0 for what no law says: code that threw, a run that goes round. */
  readonly law: number
  readonly what: string
}

/** How a world went. */
export interface FleetEnd {
  readonly violations: readonly FleetViolation[]
  readonly seed: number
  /** Each store, and the events of its runs, the oldest run first. */
  readonly stores: readonly {
    readonly name: string
    readonly ledger: Ledger
    readonly runs: readonly (readonly RuntimeEvent[])[]
  }[]
  /** What tools have done in the outside world: `outside` of each site. */
  readonly outside: ReadonlyMap<string, number>
  /** How often each fault befell something, and each act was carried out. */
  readonly happened: ReadonlyMap<string, number>
  readonly trace: readonly string[]
  readonly steps: number
  /** How much time passed in the world, in milliseconds. */
  readonly tookMs: number
}

/** Longer than any run of a fleet takes once nothing befalls it any more, in milliseconds. */
const untroubledMs = 3 * 3_600_000

/** So often something may happen in a world; beyond it, something goes round. */
const mostSteps = 60_000

/** Plays a plan to its end. The same plan gives the same ledgers, byte for byte. */
export async function playFleet(
  fleet: Fleet,
  plan: FleetPlan,
  { traced = false }: { readonly traced?: boolean } = {},
): Promise<FleetEnd> {
  const played = new FleetWorld(fleet, plan, traced)
  return await played.play()
}

/** A process through all its lives. */
interface Life {
  readonly name: string
  readonly machine: string
  number: number
  actor: Actor
  sites: LivingSite[]
  aheadMs: number
}

interface LivingSite {
  readonly site: WorkingSite
  readonly connection: Connection
  readonly agents: readonly Agent<unknown>[]
  readonly worker: SiteWorker | undefined
}

/** A run as the plan began it. */
interface Begun {
  readonly runId: RunId
  readonly store: number
}

class FleetWorld {
  readonly #fleet: Fleet
  readonly #plan: FleetPlan
  readonly #world: World
  readonly #stores: readonly SimulatedStore[]
  readonly #books = new Books()
  readonly #violations: FleetViolation[] = []
  readonly #happened = new Map<string, number>()
  readonly #lives: Life[] = []
  /** The process in which people work, which never dies. */
  readonly #desk: Life
  readonly #people: Actor
  /** Names of lives that are over, by machine. */
  readonly #ended = new Set<string>()
  readonly #begun = new Map<number, Begun>()
  /** The decisions of people, by the keys under which they are sent. */
  readonly #decisions = new Map<string, SentDecision>()
  /** The standing approvals of which a person has been told that they are withdrawn. */
  readonly #withdrawn = new Set<string>()
  /** How far ahead of the world's time a clock has been, in milliseconds. */
  #mostAheadMs = 0
  /** What is to happen as soon as a run has recorded an event, by type and run. */
  readonly #awaited = new Map<string, (seq: number) => void>()
  /** What was asked for and has no answer yet. */
  #pending = 0
  #isReady = false
  readonly #followers: Follower[] = []

  constructor(fleet: Fleet, plan: FleetPlan, traced: boolean) {
    this.#fleet = fleet
    this.#plan = plan
    this.#world = new World(plan.seed, { isCalm: plan.isCalm, traced })
    this.#people = this.#world.actor('people')
    this.#stores = Array.from({ length: plan.stores }, (_, index) => {
      const store = new SimulatedStore(this.#world, `store ${index + 1}`, this.#fault)
      store.onAppended = (events) => this.#onAppended(index, events)
      return store
    })
    for (let index = 0; index < plan.processes; index++) {
      const chance = this.#world.chance(`machine of ${index}`)
      const life = this.#createLife(
        `p${index + 1}`,
        `machine ${1 + Math.floor(chance() * 2)}`,
        Math.floor((chance() - 0.5) * 4_000),
      )
      this.#lives.push(life)
    }
    this.#desk = this.#createLife('desk', 'machine 0', 0)
  }

  readonly #fault = (law: number, what: string): void => {
    this.#world.note('BROKEN', () => `law ${law}: ${what}`)
    this.#violations.push({ law, what })
  }

  #count(what: string): void {
    this.#happened.set(what, (this.#happened.get(what) ?? 0) + 1)
  }

  async play(): Promise<FleetEnd> {
    const { starts, acts, faults } = this.#plan
    const world = this.#world
    for (const life of [...this.#lives, this.#desk]) this.#boot(life)
    for (const store of this.#stores) this.#followers.push(new Follower(world, store, this.#fault))
    for (const start of starts) this.#at(start.at, () => this.#begin(start))
    for (const act of acts) this.#at(act.at, () => this.#act(act))
    for (const fault of faults) this.#at(fault.at, () => this.#befall(fault))
    const ends = [...faults.map(({ at, forMs }) => at + forMs), ...[...starts, ...acts].map(({ at }) => at)]
    // All that is planned has begun, and what lasts is over.
    this.#at(Math.max(...ends) + 1_000, () => {
      this.#isReady = true
    })
    const isOver = (): boolean =>
      world.steps > mostSteps ||
      this.#violations.length > 0 ||
      (this.#isReady && this.#pending === 0 && this.#allEnded())
    const isDone = await world.runUntil(isOver, worldStart + untroubledMs)
    if (world.steps > mostSteps) this.#fault(0, `it takes more than ${mostSteps} steps: something goes round`)
    else if (!isDone) this.#reportStuck()
    await world.runUntil(() => false, world.now + 20_000)
    return await this.#end()
  }

  #at(ms: number, happen: () => void): void {
    this.#world.after(ms, undefined, happen)
  }

  #allEnded(): boolean {
    return this.#stores.every(({ model }) =>
      [...model.runs.values()].every(({ events }) => events.some(isAfterEnd)),
    )
  }

  #reportStuck(): void {
    for (const { name, model } of this.#stores) {
      for (const [runId, { events, dueAt, lease, inbox }] of model.runs) {
        const last = events.at(-1)
        if (last && isAfterEnd(last)) continue
        const waits = `due ${dueAt === undefined ? 'never' : dueAt === 0 ? 'now' : `at ${dueAt - worldStart} ms`}, ${inbox.size} commands, lease ${lease?.holder}`
        this.#fault(
          15,
          `${name}: run ${runId} has not ended: it stands at ${last?.type} (event ${events.length}), ${waits}`,
        )
      }
    }
    if (this.#pending > 0) this.#fault(15, `${this.#pending} commands have no answer`)
  }

  async #end(): Promise<FleetEnd> {
    const stores = await Promise.all(
      this.#stores.map(async (store) => {
        const { name, ledger } = store
        const runs = await store.readRuns()
        this.#judge(store, runs)
        return { name, ledger, runs }
      }),
    )
    for (const follower of this.#followers) await follower.compare()
    const { steps, trace, now } = this.#world
    return {
      seed: this.#plan.seed,
      violations: this.#violations,
      stores,
      outside: this.#books.outside,
      happened: this.#happened,
      trace,
      steps,
      tookMs: now - worldStart,
    }
  }

  #judge({ name, model, show }: SimulatedStore, runs: readonly (readonly RuntimeEvent[])[]): void {
    if (runs.length !== model.runs.size)
      this.#fault(4, `${name} holds ${runs.length} runs, and has accepted ${model.runs.size}`)
    for (const events of runs) {
      const runId = events[0]?.runId as RunId
      const about = `${name}, run ${runId}`
      if (toText(events) !== toText(model.runs.get(runId)?.events.map(show)))
        this.#fault(4, `${about} is not what the store has accepted`)
      const found = [
        ...checkLaws(events),
        ...judgeStarts(events, this.#books),
        ...judgeApprovals(events, this.#decisions),
      ]
      for (const { law, seq, what } of found) this.#fault(law, `${about}, event ${seq}: ${what}`)
    }
    for (const { law, runId, seq, what } of [
      ...judgeFirings(runs),
      ...judgeSessions(runs),
      ...checkBudgets(runs),
    ])
      this.#fault(law, `${name}, run ${runId}, event ${seq}: ${what}`)
  }

  // Processes

  #createLife(name: string, machine: string, aheadMs: number): Life {
    this.#mostAheadMs = Math.max(this.#mostAheadMs, aheadMs)
    return { name, machine, number: 0, actor: this.#world.actor(name), sites: [], aheadMs }
  }

  #boot(life: Life): void {
    const world = this.#world
    life.number++
    const name = `${life.name}.${life.number}`
    life.actor = world.actor(name)
    const { actor } = life
    world.note(name, () => 'begins')
    life.sites = this.#stores.map((store): LivingSite => {
      const connection = new Connection(world, store, actor)
      const aheadMs = (): number => life.aheadMs
      const site = createSite({
        world,
        actor,
        store,
        connection,
        books: this.#books,
        fault: this.#fault,
        aheadMs,
      })
      const tools = (this.#fleet.tools?.(site) ?? []).map((tool) => site.tool(tool))
      const agents = this.#fleet.agents(site, tools)
      const runtime = createRuntime({
        ledger: connection.ledger,
        agents,
        prices: this.#fleet.prices ?? {},
        contextOf: this.#fleet.contextOf,
        host: {
          clock: site.clock,
          random: actor.random,
          report: (error, what) => this.#report(actor, error, what),
          process: {
            name: `process ${name} on ${life.machine}`,
            hasEnded: (holder) => this.#hasEnded(holder, life),
          },
        },
      })
      const working: WorkingSite = { ...site, runtime, store: store.name, world, actor }
      const work = this.#fleet.work ?? startPolling
      const worker = life === this.#desk ? undefined : work(working)
      return { site: working, connection, agents, worker }
    })
  }

  #hasEnded(holder: string, { machine }: Life): boolean {
    const named = /^process (\S+) on (machine \d+)/.exec(holder)
    return named !== null && named[2] === machine && this.#ended.has(named[1] as string)
  }

  #report(actor: Actor, error: unknown, what: string): void {
    this.#world.note(
      actor.name,
      () => `reports: ${what}: ${error instanceof Error ? error.message : String(error)}`,
    )
    this.#requireExpected(error, what)
  }

  /** Refuses an error that no trouble of this world explains. */
  #requireExpected(error: unknown, what: string): void {
    const isExpected =
      error instanceof LedgerConflictError ||
      error instanceof LedgerUnavailableError ||
      error instanceof RunNotFoundError
    if (isExpected || this.#fleet.expects?.(error)) return
    this.#fault(0, `${what}: ${error instanceof Error ? `${error.name}: ${error.message}` : String(error)}`)
  }

  #kill(life: Life, why: string): void {
    if (life.actor.isDead) return
    this.#world.note(life.actor.name, () => `dies: ${why}`)
    life.actor.isDead = true
    this.#ended.add(life.actor.name)
    const { random } = life.actor
    this.#at(100 + Math.floor(random() * (random() < 0.5 ? 2_000 : 20_000)), () => this.#boot(life))
  }

  // Trouble

  #befall(planned: PlannedFault): void {
    const { fault, process, store: index, forMs, append, stored, kept } = planned
    const life = this.#lives[process % this.#lives.length] as Life
    const store = this.#stores[index % this.#stores.length] as SimulatedStore
    const site = life.sites[index % this.#stores.length] as LivingSite
    const until = this.#world.now + forMs
    if (life.actor.isDead && fault !== 'power_loss') return
    this.#world.note(
      life.actor.name,
      () => `${fault} (${store.name}, ${forMs} ms, append ${append}, ${stored ? 'stored' : 'lost'})`,
    )
    switch (fault) {
      case 'crash':
        this.#kill(life, 'killed')
        break
      case 'crash_at_append': {
        let left = append
        const { connection } = site
        connection.onAppend = () => {
          if (--left > 0) return true
          // What it has sent arrives, or does not.
          this.#world.after(0, undefined, () =>
            this.#kill(life, `at an append that is ${stored ? 'stored' : 'lost'}`),
          )
          return stored
        }
        break
      }
      case 'stop':
        life.actor.stoppedUntil = until
        break
      case 'cut_off':
        site.connection.cutOffUntil = until
        break
      case 'lost_answers':
        site.connection.answersToLose = 1 + (append % 3)
        break
      case 'late_append':
        site.connection.nextAppendLateMs = forMs
        break
      case 'slow_store':
        for (const { sites } of this.#lives)
          (sites[index % this.#stores.length] as LivingSite).connection.slowUntil = until
        break
      case 'power_loss':
        void store.losePower(kept)
        // Half of the time it is the machine of all processes, too.
        if (stored) for (const each of this.#lives) this.#kill(each, 'its machine has lost its power')
        break
      case 'drain':
        void this.#drain(life, forMs % 3_000)
        break
      case 'clock_jump':
        life.aheadMs += stored ? forMs * 20 : -forMs
        this.#mostAheadMs = Math.max(this.#mostAheadMs, life.aheadMs)
        break
      case 'duplicate_wakes':
        void this.#wakeAll()
        break
    }
    this.#count(fault)
  }

  async #drain(life: Life, graceMs: number): Promise<void> {
    const { actor, sites } = life
    await Promise.all(sites.map(async ({ worker }) => await worker?.stop(graceMs)))
    await Promise.all(sites.map(async ({ site }) => await site.runtime.drain(graceMs)))
    if (!actor.isDead && life.actor === actor) this.#kill(life, 'drained')
  }

  async #wakeAll(): Promise<void> {
    for (const { sites } of this.#lives) {
      for (const [index, { worker }] of sites.entries()) {
        for (const runId of this.#stores[index]?.model.runs.keys() ?? []) await worker?.wake?.(runId)
      }
    }
  }

  // People

  /** Does something until it is answered: what fails, since a store or a process does, is tried again. */
  #insist(what: string, attempt: () => Promise<unknown>, tries = 40): void {
    this.#pending++
    const people = this.#people
    const again = (left: number): void => {
      let isAnswered = false
      const settle = (isDone: boolean): void => {
        if (isAnswered) return
        isAnswered = true
        if (isDone || left === 0) this.#pending--
        else this.#world.after(500 + Math.floor(people.random() * 3_000), people, () => again(left - 1))
      }
      // The process that was asked may have died.
      this.#world.after(30_000, people, () => settle(false))
      attempt().then(
        () => settle(true),
        (error: unknown) => {
          this.#world.note('people', () => `${what}: ${String(error)}`)
          // A process that was asked to stop is followed by another one, which can be asked.
          if (error instanceof ConfigurationError && error.message.includes('was drained'))
            return settle(false)
          if (error instanceof ConfigurationError && isFinal(error)) return settle(true)
          this.#requireExpected(error, what)
          settle(false)
        },
      )
    }
    again(tries)
  }

  #siteOf(life: Life, store: number): LivingSite {
    return life.sites[store % this.#stores.length] as LivingSite
  }

  /** A process that lives, or the desk. */
  #living(process: number): Life {
    const life = this.#lives[process % this.#lives.length]
    return life === undefined || life.actor.isDead ? this.#desk : life
  }

  #begin({ ordinal, store, session, via, process }: FleetPlan['starts'][number]): void {
    const {
      agent: name,
      input,
      options = {},
      afterMs,
    } = this.#fleet.start(this.#world.chance(`start ${ordinal}`), ordinal)
    const own = {
      ...options,
      idempotencyKey: `start ${ordinal}`,
      ...(session !== undefined && { sessionId: `session ${session}` }),
    }
    this.#count(`start by ${via}`)
    this.#insist(`start ${ordinal}`, async () => {
      const { site, agents } = this.#siteOf(via === 'run' ? this.#living(process) : this.#desk, store)
      const agent = agents.find((each) => each.name === name)
      if (agent === undefined) throw new ConfigurationError(`The fleet has no agent ${name}.`)
      let runId: RunId
      if (afterMs !== undefined) {
        const at = this.#world.now + afterMs
        const order = { name: `start ${ordinal}`, at, input, drive: false }
        const { scheduleId } = await site.runtime.schedule(agent, {
          ...(options as ScheduleOptions),
          ...order,
        })
        return await this.#wake(store, scheduleId)
      }
      if (via === 'enqueue') {
        runId = await site.runtime.enqueue(agent, input, own)
        await this.#wake(store, runId)
      } else {
        const run: Run = site.runtime.run(agent, input, own)
        runId = run.id
        run.result.catch((error: unknown) => this.#requireExpected(error, `run ${ordinal}`))
        // Known once it is on record.
        for await (const event of run) {
          void event
          break
        }
        await this.#wake(store, runId)
      }
      this.#begun.set(ordinal, { runId, store })
    })
  }

  /** Tells the worker of a process that lives, once there is one. It may die with that: whoever asks does so until it has taken it. */
  async #wake(store: number, runId: RunId): Promise<void> {
    for (;;) {
      const life = this.#lives.find(({ actor }) => !actor.isDead)
      if (life) return await this.#siteOf(life, store).worker?.wake?.(runId)
      await this.#world.sleep(1_000, this.#people)
    }
  }

  /** Has a process drive a run, and wakes the run in case that this process dies. */
  async #resume(store: number, runId: RunId, process: number, key: string): Promise<void> {
    const { site } = this.#siteOf(this.#living(process), store)
    site.runtime.resume(runId).result.catch((error: unknown) => this.#requireExpected(error, key))
    await this.#wake(store, runId)
  }

  #act({ act, start, process }: FleetPlan['acts'][number]): void {
    const begun = this.#begun.get(start)
    if (begun === undefined) return
    const { runId, store } = begun
    this.#count(act)
    const number = this.#happened.get(act) ?? 0
    const key = `${act} ${number}`
    const message = toMessage(`Also ${key}.`)
    switch (act) {
      case 'cancel':
      case 'steer':
      case 'queue': {
        const command: OutsideCommand =
          act === 'cancel'
            ? { type: act, by: 'Kim', reason: 'No longer needed.' }
            : { type: act, message, receipt: key }
        const send = (): void => this.#send(store, runId, command, { key, process })
        // Some come at once after a step of the run.
        const random = this.#world.chance(key)
        const step = random() < 0.6 && awaitedSteps[Math.floor(random() * awaitedSteps.length)]
        return step ? void this.#awaited.set(`${step} ${runId}`, send) : send()
      }
      case 'fork':
        return this.#fork(begun, process, key)
      case 'branch':
        return this.#branch(begun, process, key)
      case 'redact':
        return this.#redact(begun, key)
      case 'edit':
        return this.#edit(begun, process, key)
      case 'mistake':
        return this.#send(store, runId, this.#drawMistake(begun, key), { key, process })
      case 'feedback':
        return this.#insist(key, async () => {
          const { site } = this.#siteOf(this.#living(process), store)
          await site.runtime.feedback(runId, { by: 'Kim', score: number }, { key })
        })
      case 'raise': {
        const raise = { type: 'raise_limit', limit: 'maxRepeats', max: 10 + number, by: 'Kim' } as const
        return this.#send(store, runId, raise, { key, process })
      }
      case 'resume':
        return this.#insist(key, () => this.#resume(store, runId, process, key))
    }
  }

  /** Somebody asks for what nothing waits for, most of the time: looks at another call, or at an old page. */
  #drawMistake({ runId, store }: Begun, key: string): OutsideCommand {
    const random = this.#world.chance(key)
    const requests = this.#readEvents(store, runId).filter(({ type }) => type === 'tool_request_ready')
    const { toolCallId = `call_${runId.replaceAll('-', '')}_9_1_9` } =
      random() < 0.2 ? {} : (requests[Math.floor(random() * requests.length)] ?? {})
    const about = { toolCallId, by: 'person 6' }
    const choice = Math.floor(random() * 6)
    if (choice === 0) return { type: 'withdraw', standing: toolCallId, by: 'person 6' }
    if (choice === 1) return { type: 'settle', toolCallId, outcome: 'failed', content: [] }
    if (choice === 2) return { type: 'raise_limit', limit: 'maxTurns', max: 1, by: 'person 6' }
    const decision = {
      ...about,
      attempt: 1 + Math.floor(random() * 2),
      inputDigest: `sha256:${'0'.repeat(64)}`,
    }
    return choice === 3 ? { type: 'deny', ...decision, reason: 'No.' } : { type: 'approve', ...decision }
  }

  /** Forks a run somewhere, or as soon as a call of it has been approved, which is then about to be performed. */
  #fork(begun: Begun, process: number, key: string): void {
    const random = this.#world.chance(key)
    const place = random()
    const choice = random()
    const writes = choice < 0.3 ? 'run' : choice < 0.6 ? 'ask' : 'stub'
    const { runId, store } = begun
    if (random() < 0.5)
      this.#awaited.set(`approval_decided ${runId}`, (seq) =>
        this.#forkAt(begun, { process, key, writes, at: () => seq }),
      )
    else {
      const at = (): number =>
        1 + Math.floor(place * (this.#stores[store]?.model.runs.get(runId)?.events.length ?? 0))
      this.#forkAt(begun, { process, key, writes, at })
    }
  }

  #forkAt(
    { runId, store }: Begun,
    {
      process,
      key,
      writes,
      at,
    }: {
      readonly process: number
      readonly key: string
      readonly writes: 'run' | 'ask' | 'stub'
      readonly at: () => number
    },
  ): void {
    let forked: RunId | undefined
    this.#insist(key, async () => {
      const { site } = this.#siteOf(this.#living(process), store)
      if (forked !== undefined && this.#stores[store]?.model.runs.has(forked)) return
      const run = site.runtime.fork(runId, { atSeq: at(), writes })
      forked = run.id
      run.result.catch((error: unknown) => {
        if (!(error instanceof ConfigurationError)) this.#requireExpected(error, key)
      })
    })
  }

  /** Removes what a run says, or all that the record says of a call that it has asked for. */
  #redact({ runId, store: index }: Begun, key: string): void {
    const store = this.#stores[index]
    const events = store?.model.runs.get(runId)?.events ?? []
    const random = this.#world.chance(key)
    const requests = events.filter(({ type }) => type === 'tool_request_ready')
    // The newest is the one that may wait.
    const call = random() < 0.3 ? undefined : requests.at(-1 - Math.floor(random() ** 3 * requests.length))
    const isAbout = (event: RuntimeEvent): boolean =>
      event.toolCallId === call?.toolCallId || (event.turn === call?.turn && withCalls.has(event.type))
    const seqs = events.filter((event) => call === undefined || isAbout(event)).map(({ seq }) => seq)
    this.#world.note('people', () => `redact events ${seqs.join(', ')} of ${runId}`)
    store?.redact(runId, new Set(seqs), { kind: 'redacted', at: this.#world.now, by: 'Kim', reason: key })
  }

  /** Edits the session of a run, unless another run of it is under way for long. */
  #edit({ runId, store }: Begun, process: number, key: string): void {
    const choice = this.#world.chance(key)()
    const sessionId = this.#findSession(store, runId)
    if (sessionId === undefined) return
    const own = { by: 'Kim', reason: key }
    const attempt = async (): Promise<void> => {
      const session = this.#siteOf(this.#living(process), store).site.runtime.session(sessionId)
      if (choice < 0.4) await session.append(toMessage(`Added by ${key}.`), own)
      else if (choice < 0.8) await session.pop(own)
      else await session.clear(own)
    }
    this.#insist(key, attempt, 5)
  }

  #findSession(store: number, runId: RunId): string | undefined {
    const [first] = this.#stores[store]?.model.runs.get(runId)?.events ?? []
    return first?.type === 'run_started' ? first.sessionId : undefined
  }

  /** Begins a run with the history of another one, up to some event of it. */
  #branch({ runId, store }: Begun, process: number, key: string): void {
    const chance = this.#world.chance(key)
    const [place, isEdited] = [chance(), chance() < 0.4]
    const edit = {
      of: runId,
      edits: [{ index: 0, message: toMessage(`Changed by ${key}.`) }],
      by: 'Kim',
    } as const
    const {
      agent: name,
      input,
      options = {},
    } = this.#fleet.start(this.#world.chance(`start of ${key}`), 1_000)
    let atSeq: number | undefined
    this.#insist(key, async () => {
      const { site, agents } = this.#siteOf(this.#living(process), store)
      const agent = agents.find((each) => each.name === name)
      if (agent === undefined) throw new ConfigurationError(`The fleet has no agent ${name}.`)
      atSeq ??= 1 + Math.floor(place * (this.#stores[store]?.model.runs.get(runId)?.events.length ?? 0))
      const own = {
        ...options,
        idempotencyKey: key,
        sessionId: `session of ${key}`,
        from: { runId, atSeq },
        ...(isEdited && { edit }),
      }
      const branch = await site.runtime.enqueue(agent, input, own)
      const [first] = this.#stores[store]?.model.runs.get(branch)?.events ?? []
      const { parent } = first?.type === 'run_started' ? first : {}
      if (first && (parent?.runId !== runId || parent.seq !== atSeq))
        this.#fault(
          7,
          `${branch} begins at event ${parent?.seq} of ${parent?.runId}, and not at ${atSeq} of ${runId}`,
        )
      await this.#wake(store, branch)
    })
  }

  /** Sends a command until it is decided: by the desk, which only puts it there, or by a process that takes the run. */
  #send(
    store: number,
    runId: RunId,
    command: OutsideCommand,
    {
      key,
      process,
      onRefused,
      person,
    }: {
      readonly key: string
      readonly process: number
      readonly onRefused?: () => void
      /** Who it really is; default: by the name that is given. */
      readonly person?: string
    },
  ): void {
    if (command.type === 'approve' || command.type === 'deny')
      this.#decisions.set(key, { command, person: person ?? command.by })
    const isPosted = this.#world.chance(`way of ${key}`)() < 0.7
    this.#insist(key, async () => {
      const asked = ('toolCallId' in command && extractRunId(command.toolCallId)) || runId
      const sent = { command, key, asked, from: this.#readEvents(store, asked).length }
      if (isPosted) {
        const { site } = this.#siteOf(this.#desk, store)
        const answer = await site.runtime.post(runId, command, { key })
        this.#judgeAnswer(store, answer, sent)
        if (answer.accepted) await this.#wake(store, answer.wake)
        else onRefused?.()
        this.#world.note(
          'people',
          () => `${command.type} to ${runId}: ${answer.accepted ? 'posted' : answer.message}`,
        )
        return
      }
      const { site } = this.#siteOf(this.#living(process), store)
      try {
        const answer = await site.runtime.send(runId, command, { key })
        this.#judgeAnswer(store, answer, sent)
        if (!answer.accepted) onRefused?.()
        else if (command.type === 'withdraw') this.#withdrawn.add(command.standing)
        this.#world.note(
          'people',
          () => `${command.type} to ${runId}: ${answer.accepted ? 'accepted' : answer.message}`,
        )
      } catch (error) {
        // It was sent before, and the answer was lost.
        if (!(error instanceof LedgerConflictError) || error.kind !== 'unique') throw error
      }
      const { ledger } = this.#stores[store] as SimulatedStore
      await this.#wake(store, await findOpenRoot(ledger, runId))
    })
  }

  #readEvents(index: number, runId: RunId): readonly RuntimeEvent[] {
    const { model, show } = this.#stores[index] as SimulatedStore
    return model.runs.get(runId)?.events.map(show) ?? []
  }

  /** Law 15: a refusal says what is so. */
  #judgeAnswer(
    store: number,
    answer: CommandAcknowledgement,
    {
      command,
      key,
      asked,
      from,
    }: {
      readonly command: OutsideCommand
      readonly key: string
      readonly asked: RunId
      readonly from: number
    },
  ): void {
    // Where another process has refused it, nobody here knows why.
    if (answer.accepted || answer.message.includes('the run had moved on')) return
    const events = this.#readEvents(store, asked)
    const now = this.#world.now + this.#mostAheadMs
    const { code, message } = answer
    const obeyed = events.find(({ inboxKey }) => inboxKey === key)
    if (obeyed !== undefined)
      this.#fault(
        15,
        `${command.type} to ${asked} (${key}) was refused, and event ${obeyed.seq} records it: ${message}`,
      )
    if (!isRefusalTrue({ command, code, events, from, now }))
      this.#fault(
        15,
        `${command.type} to ${asked} (${key}) was refused as ${code}, which it was not: ${message}`,
      )
  }

  #onAppended(store: number, events: readonly RuntimeEvent[]): void {
    const [first] = events
    const shared = findSharedSeq(
      (first && this.#stores[store]?.model.runs.get(first.runId)?.events) ?? events,
    )
    for (const event of events) {
      if (event.type === 'approval_applied' && event.seq > shared) this.#applied(event)
      if (event.type === 'approval_decided' && event.standing && !event.elsewhere)
        this.#withdraw(store, event, event.toolCallId)
      if (event.type === 'run_started')
        for (const { toolCallId } of event.standing ?? []) this.#withdraw(store, event, toolCallId)
      this.#world.note(`store ${store + 1}`, () => describeEvent(event))
      if (event.type === 'approval_requested') this.#answer(store, event)
      if (event.type !== 'approval_decided' || event.approved) this.#happenOnce(event)
      if (event.type === 'tool_deferred') this.#settle(store, event)
      // Its process may die, or have died before this append arrived.
      if (event.type === 'run_started' && shared > 0)
        this.#insist(`wake of ${event.runId}`, () => this.#wake(store, event.runId))
      if (event.type === 'limit_reached' && event.policy === 'ask') this.#raise(store, event)
    }
  }

  #happenOnce({ type, runId, seq }: RuntimeEvent): void {
    const key = `${type} ${runId}`
    const happen = this.#awaited.get(key)
    this.#awaited.delete(key)
    happen?.(seq)
  }

  /** Law 13: once its end was confirmed, a standing approval lets nothing more through, whatever its record says. */
  #applied({ runId, seq, standing }: EventOf<'approval_applied'> & RuntimeEvent): void {
    this.#count('approval applied')
    if (this.#withdrawn.has(standing))
      this.#fault(13, `run ${runId}, event ${seq}: ${standing} lets a call through, and was withdrawn`)
  }

  /** Some standing approvals are withdrawn: in a run that has them, or in the session once that run has ended. */
  #withdraw(store: number, { runId, seq }: RuntimeEvent, standing: string): void {
    const key = `withdrawal ${standing} ${runId} ${seq}`
    const random = this.#world.chance(key)
    if (random() < 0.15) return
    // Some do so as soon as they see it.
    const longestMs = [0, 20, 2_000, 20_000][Math.floor(random() * 4)] ?? 0
    this.#world.after(Math.floor(random() * longestMs), this.#people, () => {
      this.#count('withdraw')
      const process = Math.floor(random() * 8)
      const sessionId = this.#findSession(store, runId)
      const onRefused = (): void => {
        if (sessionId === undefined) return
        this.#insist(
          `${key} in its session`,
          async () => {
            const { site } = this.#siteOf(this.#living(process), store)
            if (await site.runtime.session(sessionId).withdraw(standing, { by: 'Kim' }))
              this.#withdrawn.add(standing)
          },
          5,
        )
      }
      this.#send(store, runId, { type: 'withdraw', standing, by: 'Kim' }, { key, process, onRefused })
    })
  }

  /** People decide in the end; some late, some twice, and two of them in different ways. */
  #answer(store: number, event: EventOf<'approval_requested'> & RuntimeEvent): void {
    const { runId, toolCallId, attempt, inputDigest, name, seq, approvers } = event
    if (toolCallId === undefined) return
    const random = this.#world.chance(`decision ${toolCallId} ${attempt} ${seq}`)
    const people = approvers ? this.#listApprovers(store, event) : [{ by: 'person 1' }, { by: 'person 2' }]
    const decisions = approvers ? people.length : random() < 0.35 ? 2 : 1
    people.slice(0, decisions).forEach(({ person, ...by }: AskedPerson, index) => {
      const number = index + 1
      const chance = random()
      const input = chance > 0.85 ? this.#fleet.changeInput?.(name) : undefined
      const about = { toolCallId, attempt, inputDigest, ...by }
      const key = `decision ${number} ${toolCallId} ${attempt} ${seq}`
      const command: OutsideCommand =
        chance < (approvers ? 0.05 : 0.25)
          ? { type: 'deny', ...about, reason: 'Not today.' }
          : {
              type: 'approve',
              ...about,
              ...(input ? { input } : drawStanding(this.#world.chance(`standing of ${key}`))),
            }
      // Some decide in the moment in which the run comes to rest.
      const longestMs = [20, 2_000, 2_000, 60_000][Math.floor(random() * 4)] ?? 0
      const delayMs = Math.floor(random() * longestMs)
      this.#world.after(delayMs, this.#people, () => {
        this.#count(command.type)
        const process = Math.floor(random() * 8)
        // A changed input that does not fit is refused, and the call waits on; so is one of several people who asks for more.
        const onRefused = (): void => {
          if (!('input' in command) && !('standing' in command)) return
          const plain = { type: 'approve', ...about } as const
          this.#send(store, runId, plain, { key: `${key} plain`, process, ...(person && { person }) })
        }
        const sent = { key, process, onRefused, ...(person && { person }) }
        this.#send(store, runId, command, sent)
        if (random() < 0.1) this.#send(store, runId, command, sent)
      })
    })
    // Somebody has an old page open, and answers what was asked before.
    if (attempt > 1) {
      const stale = {
        type: 'approve',
        toolCallId,
        attempt: attempt - 1,
        inputDigest,
        by: 'person 4',
      } as const
      this.#send(store, runId, stale, { key: `stale decision ${toolCallId} ${attempt} ${seq}`, process: 0 })
    }
    this.#decideInTheEnd(store, event)
  }

  /** More people than have to approve: one of them twice, one without a role, and the one who started the run. */
  #listApprovers(
    store: number,
    { runId, approvers = [] }: EventOf<'approval_requested'> & RuntimeEvent,
  ): readonly AskedPerson[] {
    const [first] = this.#stores[store]?.model.runs.get(runId)?.events ?? []
    const owner = first?.type === 'run_started' ? first.owner : undefined
    const roles = approvers.flatMap((demand) => demand.roles ?? [])
    return [
      { by: 'person 1', roles },
      { by: ' Person\u00a01', roles, person: 'person 1' },
      { by: 'person 2', roles },
      { by: 'person 3', roles: ['visitor'] },
      ...(owner === undefined ? [] : [{ by: owner.toUpperCase(), roles, person: owner }]),
      { by: 'person 5', roles },
    ]
  }

  /**
   * What was posted may have been refused later, such as a changed input: whoever sees the question again decides again,
   * by what is shown then, of which something may have been removed.
   */
  #decideInTheEnd(store: number, event: EventOf<'approval_requested'> & RuntimeEvent): void {
    const { runId, toolCallId, attempt, seq } = event
    this.#world.after(120_000, this.#people, () => {
      const { ledger, model, show } = this.#stores[store] as SimulatedStore
      const state = model.runs.get(runId)?.events.map(show).reduce<RunState | undefined>(evolve, undefined)
      const call = state && toolCallId && findCall(state, toolCallId)
      if (state === undefined || !call || call.status !== 'awaiting_approval') return
      const key = `decision 3 ${toolCallId} ${attempt} ${seq}`
      const pending = listPendingApprovals(state).find((each) => each.toolCallId === toolCallId)
      if (pending) {
        const { inputDigest } = pending
        const about = { toolCallId: pending.toolCallId, attempt: pending.attempt, inputDigest }
        const command = { type: 'deny', ...about, by: 'person 3', reason: 'Too late.' } as const
        return this.#send(store, runId, command, { key, process: 0 })
      }
      // Its input was removed: nobody can decide about it, and the run goes on without it.
      this.#insist(key, async () => {
        await this.#resume(store, await findOpenRoot(ledger, runId), 0, key)
      })
    })
  }

  #settle(
    store: number,
    { runId, toolCallId, receipt, attempt }: EventOf<'tool_deferred'> & RuntimeEvent,
  ): void {
    // A child run settles the call of its parent itself.
    if (toolCallId === undefined || this.#stores[store]?.model.runs.has(receipt as RunId)) return
    const random = this.#world.chance(`settling ${toolCallId} ${attempt}`)
    const content = [{ type: 'text', text: 'Done outside.' }] as const
    const outcome = random() < 0.8 ? 'success' : 'failed'
    this.#world.after(Math.floor(random() ** 3 * 20_000), this.#people, () => {
      this.#count('settle')
      const key = `settling ${toolCallId} ${attempt}`
      this.#send(
        store,
        runId,
        { type: 'settle', toolCallId, outcome, content },
        { key, process: Math.floor(random() * 8) },
      )
    })
  }

  #raise(store: number, { runId, limit, seq }: EventOf<'limit_reached'> & RuntimeEvent): void {
    const key = `raise ${runId} ${seq}`
    this.#world.after(1_000, this.#people, () => {
      this.#count('raise at a limit')
      // A child run stays within what its parent granted.
      const onRefused = (): void => {
        const reason = `No more of ${limit}.`
        this.#send(store, runId, { type: 'cancel', by: 'Kim', reason }, { key: `${key} cancel`, process: 0 })
      }
      const command = { type: 'raise_limit', limit, max: 1_000_000_000, by: 'Kim' } as const
      this.#send(store, runId, command, { key, process: 0, onRefused })
    })
  }
}

/** The steps of a run after which somebody sends it something. */
const awaitedSteps = [
  ...(['tool_results_injected', 'assistant_message_finished', 'run_resumed'] as const),
  'background_ended' as const,
]

/** Somebody who is asked to approve. */
interface AskedPerson {
  readonly by: string
  readonly roles?: readonly string[]
  /** Who it really is, if that is another name. */
  readonly person?: string
}

/** Some approvals also let later calls through. */
function drawStanding(random: Random): { readonly standing?: StandingOptions } {
  if (random() < 0.3) return {}
  const expiresInMs = 1 + Math.floor(random() ** 2 * 300_000)
  return { standing: { for: random() < 0.5 ? 'session' : 'equal_input', expiresInMs } }
}

function toMessage(text: string): Extract<Message, { readonly role: 'user' }> {
  return { role: 'user', parts: [{ type: 'text', text }] }
}

/** The events that hold the inputs of all calls of a reply. */
const withCalls: ReadonlySet<string> = new Set(['assistant_message_finished', 'tool_requests_collected'])

/** Trying again would change nothing: of an event that a power loss took, too. */
function isFinal({ message }: ConfigurationError): boolean {
  return /idempotency key|fork|cannot be made|cannot begin from/i.test(message)
}

function toText(events: readonly RuntimeEvent[] = []): string {
  return toCanonicalJson(events as unknown as Json)
}

function describeEvent(event: RuntimeEvent): string {
  const { runId, seq, epoch, type, toolCallId } = event
  const call = toolCallId === undefined ? '' : ` ${toolCallId.slice(-8)}`
  const more = 'outcome' in event ? ` ${event.outcome}` : 'reason' in event ? ` ${event.reason}` : ''
  return `${runId.slice(0, 8)}…${runId.slice(-4)} #${seq} e${epoch} ${type}${call}${more}`
}

/** Follows a store from cursor to cursor, beginning anew in between as a process does that has kept the cursor. */
class Follower {
  readonly #store: SimulatedStore
  readonly #fault: (law: number, what: string) => void
  readonly #seen: string[] = []
  #cursor: string | undefined

  constructor(world: World, store: SimulatedStore, fault: (law: number, what: string) => void) {
    this.#store = store
    this.#fault = fault
    const chance = world.chance(`follower of ${store.name}`)
    const look = (): void => {
      world.after(200 + Math.floor(chance() * 5_000), undefined, () => {
        void this.#read(1 + Math.floor(chance() * 40))
        look()
      })
    }
    look()
  }

  async #read(most = Infinity): Promise<void> {
    try {
      let count = 0
      for await (const { cursor, event } of this.#store.ledger.tail(this.#cursor)) {
        this.#cursor = cursor
        this.#seen.push(`${event.runId} ${event.seq} ${event.epoch}`)
        if (++count >= most) return
      }
    } catch (error) {
      // What it has read was lost with the power of the machine: it begins anew.
      if (!(error instanceof ConfigurationError) || this.#store.lost.length === 0) throw error
      this.#cursor = undefined
      this.#seen.length = 0
    }
  }

  /** Requires that it has seen each event once, those of one run in order. */
  async compare(): Promise<void> {
    if (this.#store.lost.length > 0) return
    await this.#read()
    const seen = new Map<string, number>()
    for (const line of this.#seen) {
      const [runId = '', seq] = line.split(' ')
      const before = seen.get(runId) ?? 0
      if (Number(seq) !== before + 1)
        this.#fault(4, `a follower of ${this.#store.name} read event ${seq} of ${runId} after ${before}`)
      seen.set(runId, Number(seq))
    }
    for (const [runId, { events }] of this.#store.model.runs)
      if (events.length !== (seen.get(runId) ?? 0))
        this.#fault(
          4,
          `a follower of ${this.#store.name} read ${seen.get(runId) ?? 0} of ${events.length} events of ${runId}`,
        )
  }
}

/** Drives what is due: asks the ledger every second and at each hint, and drives each run that it finds. */
function startPolling({ runtime, ledger, clock }: WorkingSite): SiteWorker {
  const driving = new Map<RunId, Promise<void>>()
  const stopping = new AbortController()
  let isLooking = false
  let isAsked = false
  const drive = async (runId: RunId): Promise<void> => {
    try {
      await runtime.drive(runId, { signal: stopping.signal })
    } catch {
      // It is due still, and is found again.
    }
  }
  const look = async (): Promise<void> => {
    isAsked = true
    if (isLooking) return
    isLooking = true
    try {
      while (isAsked && !stopping.signal.aborted) {
        isAsked = false
        for await (const { runId: due } of ledger.due({ before: clock.now() })) {
          const runId = await findOpenRoot(ledger, due)
          if (driving.has(runId) || stopping.signal.aborted) continue
          const driven = drive(runId).finally(() => driving.delete(runId))
          driving.set(runId, driven)
        }
      }
    } catch {
      // The ledger does not answer: at the next look it may.
    } finally {
      isLooking = false
    }
  }
  const hints = ledger.changes(undefined, 'inbox').subscribe(() => void look())
  const tick = (): void => {
    if (stopping.signal.aborted) return
    void look()
    clock.schedule(1_000, tick)
  }
  tick()
  return {
    async stop(graceMs) {
      stopping.abort()
      hints.unsubscribe()
      const grace = new Promise<void>((resolve) => void clock.schedule(graceMs, resolve))
      await Promise.race([Promise.all(driving.values()), grace])
    },
  }
}
