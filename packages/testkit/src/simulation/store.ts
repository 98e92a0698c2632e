import { Observable, type Subscriber } from 'rxjs'
import { type Ledger, LedgerUnavailableError, type RunId, type RuntimeEvent } from '@tallystick/core'
import { redactEvent } from '@tallystick/core/store-kit'
import type { AppendOptions, EventOf, ExpectedHead, Head, Removed } from '@tallystick/core/vocabulary'
import { volatileLedger, type VolatileLedger, wrapLedger } from '../doubles/ledger.ts'
import { type ReportFault, StoreModel } from './store-model.ts'
import { type Actor, createLane, type Lane, type World } from './world.ts'

/** A store of a simulated world, which outlives all processes. Each call of it is carried out at once, and held against a model. */
export class SimulatedStore {
  readonly name: string
  readonly ledger: Ledger
  readonly model: StoreModel
  /** Called with the events of each append that was carried out. */
  onAppended = (_events: readonly RuntimeEvent[]): void => {}
  readonly #memory: VolatileLedger
  readonly #hints = new Set<() => void>()
  /** What is left of events whose content was removed, by `nameEvent`. */
  readonly #redacted = new Map<string, RuntimeEvent>()
  readonly #onTakenOver = new Map<RunId, (() => void)[]>()

  constructor(world: World, name: string, fault: ReportFault) {
    this.name = name
    const clock = { now: () => world.now }
    this.#memory = volatileLedger({ clock })
    this.model = new StoreModel(clock.now, (law, what) => fault(law, `${name}: ${what}`))
    this.ledger = this.#hold(this.#memory)
  }

  get lost(): readonly RuntimeEvent[] {
    return this.#memory.lost
  }

  isSynced(runId: RunId, seq: number): boolean {
    return this.#memory.isSynced(runId, seq)
  }

  /** The machine of the store loses its power, and is there again at once. */
  async losePower(kept: number): Promise<void> {
    await this.#memory.losePower(kept)
    this.model.lostPower(kept)
    for (const hint of [...this.#hints]) hint()
  }

  /** Removes the content of events of a run. */
  redact(runId: RunId, seqs: ReadonlySet<number>, removed: Removed): void {
    for (const event of this.model.runs.get(runId)?.events ?? []) {
      if (!seqs.has(event.seq)) continue
      const { seq, epoch, at, turn, v, type, toolCallId } = event
      const envelope = {
        runId,
        seq,
        epoch,
        at,
        turn,
        v,
        type,
        ...(toolCallId !== undefined && { toolCallId }),
      }
      this.#redacted.set(nameEvent(event), { ...redactEvent(event), ...envelope, removed } as RuntimeEvent)
    }
  }

  /** The event as the store has it now: without its content, if that was removed. */
  readonly show = (event: RuntimeEvent): RuntimeEvent => this.#redacted.get(nameEvent(event)) ?? event

  /** Calls back once, when the run has been taken over. */
  onceTakenOver(runId: RunId, callback: () => void): void {
    this.#onTakenOver.set(runId, [...(this.#onTakenOver.get(runId) ?? []), callback])
  }

  /** Every event of every run, by run. */
  async readRuns(): Promise<readonly (readonly RuntimeEvent[])[]> {
    const runs: RuntimeEvent[][] = []
    for await (const { runId } of this.#memory.runs()) {
      const events: RuntimeEvent[] = []
      for await (const event of this.ledger.read(runId)) events.push(event)
      runs.unshift(events)
    }
    return runs
  }

  #hold(memory: VolatileLedger): Ledger {
    const { model, show } = this
    const told = async <T>(
      call: Promise<T>,
      tell: (answer: T | { readonly error: unknown }) => void,
    ): Promise<T> => {
      try {
        const answer = await call
        tell(answer)
        return answer
      } catch (error) {
        tell({ error })
        throw error
      }
    }
    return {
      ...wrapLedger(() => memory, { call: (call) => call(), each: (items) => items }),
      append: async (runId, expected, events, options) => {
        const head = await told(memory.append(runId, expected, events, options), (answer) =>
          model.appended({ runId, expected, events, options }, answer),
        )
        this.onAppended(events)
        return head
      },
      acquire: async (runId, claim) => {
        const head = await told(memory.acquire(runId, claim), (answer) =>
          model.acquired(runId, claim, answer),
        )
        for (const callback of this.#onTakenOver.get(runId) ?? []) callback()
        this.#onTakenOver.delete(runId)
        return head
      },
      read: async function* (...given) {
        for await (const event of memory.read(...given)) yield show(event)
      },
      find: async function* (query) {
        for await (const event of memory.find(query)) yield show(event)
      },
      tail: async function* (after) {
        for await (const { cursor, event } of memory.tail(after)) yield { cursor, event: show(event) }
      },
      put: (runId, entry, options) =>
        told(memory.put(runId, entry, options), (answer) => model.wasPut(runId, entry, answer)),
      inbox: async (runId) => {
        const entries = await memory.inbox(runId)
        model.readInbox(runId, entries)
        return entries
      },
      head: async (runId) => {
        const head = await memory.head(runId)
        model.readHead(runId, head)
        return head
      },
      renew: async (runIds, claim) => {
        const renewed = await memory.renew(runIds, claim)
        model.renewed(runIds, claim, renewed)
        return renewed
      },
      release: async (runId, holder, wait) => {
        await memory.release(runId, holder, wait)
        model.released(runId, holder, wait)
      },
      due: async function* (filter) {
        const found = await collect(memory.due(filter))
        model.readDue(
          filter,
          found.map(({ runId }) => runId),
        )
        yield* found
      },
      changes: (runId, part) => this.#changes(runId, part),
    }
  }

  /** The hints of the memory; after a loss of power, of the new one. */
  #changes(runId: RunId | undefined, part: 'inbox' | undefined): Observable<void> {
    return new Observable<void>((subscriber: Subscriber<void>) => {
      let inner = this.#memory.changes(runId, part).subscribe(() => subscriber.next())
      const renew = (): void => {
        inner.unsubscribe()
        inner = this.#memory.changes(runId, part).subscribe(() => subscriber.next())
        subscriber.next()
      }
      this.#hints.add(renew)
      return () => {
        this.#hints.delete(renew)
        inner.unsubscribe()
      }
    })
  }
}

/** Names an event for as long as it is on record: another one in its place is of another epoch. */
function nameEvent({ runId, seq, epoch, at, type }: RuntimeEvent): string {
  return `${runId} ${seq} ${epoch} ${at} ${type}`
}

/** How long a client waits at most for an answer that does not come, in milliseconds. */
const noAnswerMs = 4_000

/**
 * One process's connection to a store. A request takes a while, its answer takes a while, and both may be lost: while the
 * process is cut off, and where an answer is told to be lost. Requests about one run arrive in the order in which they were sent.
 */
export class Connection {
  readonly ledger: Ledger
  /** Until when nothing gets through. */
  cutOffUntil: number = -Infinity
  /** So many of the next answers do not come, though the store has carried out what it was asked. */
  answersToLose = 0
  /** The next append arrives once its run has been taken over, and so many milliseconds later at the latest. */
  nextAppendLateMs: number | undefined
  /** Until when the store is slow. */
  slowUntil: number = -Infinity
  /** Told of each append before it is sent; returns whether the request gets through. */
  onAppend = (): boolean => true
  /** The calls of models that this process has recorded and not begun. */
  readonly calls: EventOf<'model_call_started' | 'compaction_started'>[] = []
  readonly #world: World
  readonly #store: SimulatedStore
  readonly #actor: Actor
  readonly #lanes = new Map<string, Lane>()

  constructor(world: World, store: SimulatedStore, actor: Actor) {
    this.#world = world
    this.#store = store
    this.#actor = actor
    const { ledger } = store
    this.ledger = {
      ...wrapLedger(() => ledger, {
        call: (call) => this.#ask('', call),
        each: (items) => this.#each(items),
      }),
      append: (...given) => this.#append(...given),
      acquire: (runId, claim) => this.#ask(runId, () => ledger.acquire(runId, claim)),
      release: (runId, holder, wait) => this.#ask(runId, () => ledger.release(runId, holder, wait)),
      put: (runId, entry, options) => this.#ask(runId, () => ledger.put(runId, entry, options)),
      changes: (runId, part) => this.#changes(runId, part),
      close: () => Promise.resolve(),
    }
  }

  get #isCutOff(): boolean {
    return this.cutOffUntil > this.#world.now
  }

  async #append(
    runId: RunId,
    expected: ExpectedHead,
    events: readonly RuntimeEvent[],
    options: AppendOptions,
  ): Promise<Head> {
    if (!this.onAppend()) return await new Promise(() => {})
    const lateMs = this.nextAppendLateMs
    if (lateMs !== undefined) this.#delayAppend(lateMs, runId, [expected, events, options])
    const head = await this.#ask(runId, () => this.#store.ledger.append(runId, expected, events, options))
    const [first] = events
    // What a fork shares with another run began there.
    const shared = first?.type === 'run_started' && first.parent?.relation === 'fork' ? first.parent.seq : 0
    for (const event of events.slice(shared))
      if (event.type === 'model_call_started' || event.type === 'compaction_started') this.calls.push(event)
    return head
  }

  /** The connection breaks, and what was sent arrives long after its sender has given up waiting. */
  #delayAppend(
    lateMs: number,
    runId: RunId,
    given: readonly [ExpectedHead, readonly RuntimeEvent[], AppendOptions],
  ): void {
    const world = this.#world
    this.nextAppendLateMs = undefined
    this.cutOffUntil = Math.max(this.cutOffUntil, world.now + noAnswerMs)
    let hasArrived = false
    const arrive = (): void => {
      if (hasArrived) return
      hasArrived = true
      this.#store.ledger
        .append(runId, ...given)
        .catch((error: unknown) =>
          world.note(this.#actor.name, () => `a late append to ${runId} was refused: ${String(error)}`),
        )
    }
    this.#store.onceTakenOver(runId, () => world.after(0, undefined, arrive))
    world.after(Math.max(lateMs, noAnswerMs), undefined, arrive)
  }

  #ask<T>(about: string, call: () => Promise<T>): Promise<T> {
    const { promise, resolve, reject } = Promise.withResolvers<T>()
    const world = this.#world
    const actor = this.#actor
    const lose = (): void =>
      void world.after(world.drawDelay(actor, 1, noAnswerMs), actor, () =>
        reject(createNoAnswerError(this.#store.name)),
      )
    const lane = this.#lanes.get(about) ?? createLane()
    this.#lanes.set(about, lane)
    if (this.#isCutOff) lose()
    else {
      // On its way, whatever becomes of the process that has sent it.
      const arrive = (): void => {
        if (this.#isCutOff) return lose()
        const answer = call()
        const isLost = this.answersToLose > 0
        if (isLost) this.answersToLose--
        const deliver = (settle: () => void): void => {
          if (isLost || this.#isCutOff) lose()
          else world.after(this.#drawDelay(), actor, () => (this.#isCutOff ? lose() : settle()))
        }
        answer.then(
          (value) => deliver(() => resolve(value)),
          (error: unknown) => deliver(() => reject(error)),
        )
      }
      world.after(this.#drawDelay(), undefined, arrive, lane)
    }
    return promise
  }

  async *#each<T>(items: AsyncIterable<T>): AsyncGenerator<T> {
    const found = await this.#ask('', () => collect(items))
    yield* found
  }

  /** Hints come late, and those of a process that is cut off once it is not. */
  #changes(runId: RunId | undefined, part: 'inbox' | undefined): Observable<void> {
    const world = this.#world
    return new Observable<void>((subscriber) =>
      this.#store.ledger.changes(runId, part).subscribe(() => {
        const cutOffMs = Math.max(0, this.cutOffUntil - world.now)
        world.after(cutOffMs + this.#drawDelay(), this.#actor, () => subscriber.next())
      }),
    )
  }

  #drawDelay(): number {
    return this.#world.drawDelay(this.#actor, 0, this.slowUntil > this.#world.now ? 3_000 : 8)
  }
}

async function collect<T>(items: AsyncIterable<T>): Promise<readonly T[]> {
  const found: T[] = []
  for await (const item of items) found.push(item)
  return found
}

function createNoAnswerError(name: string): LedgerUnavailableError {
  return new LedgerUnavailableError(
    `${name} did not answer in time. What it was asked may have been carried out.`,
  )
}
