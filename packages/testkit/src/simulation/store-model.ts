import { LedgerConflictError, type RunId, type RuntimeEvent } from '@tallystick/core'
import {
  type AppendOptions,
  type DueFilter,
  type ExpectedHead,
  type Head,
  type InboxEntry,
  isAfterEnd,
  type LeaseClaim,
  type RunWait,
  type TakeOverClaim,
  toCanonicalJson,
} from '@tallystick/core/vocabulary'

/** Reports that a law is broken, by its number. */
export type ReportFault = (law: number, what: string) => void

interface ModelRun {
  readonly events: RuntimeEvent[]
  epoch: number
  lease: { readonly holder: string; readonly until: number } | undefined
  readonly inbox: Map<string, InboxEntry>
  readonly keys: Set<string>
  dueAt: number | undefined
}

interface Append {
  readonly runId: RunId
  readonly expected: ExpectedHead
  readonly events: readonly RuntimeEvent[]
  readonly options: AppendOptions
}

/**
 * THE ORACLE OF A STORE: what it has to hold and to answer, by the words of its port alone. It is told of each call in the order
 * in which the store carried them out, and reports each answer that is not the one that it expects.
 */
export class StoreModel {
  readonly runs: Map<RunId, ModelRun> = new Map()
  readonly #now: () => number
  readonly #fault: ReportFault
  /** What the disk holds, in order. */
  #changes: (() => void)[] = []
  #synced = 0

  constructor(now: () => number, fault: ReportFault) {
    this.#now = now
    this.#fault = fault
  }

  appended(append: Append, answer: Head | { readonly error: unknown }): void {
    const why = this.#findRefusal(append)
    if ('error' in answer) {
      const { error } = answer
      if (why === undefined && error instanceof LedgerConflictError)
        this.#fault(10, `an append to ${append.runId} was refused for nothing: ${error.message}`)
      return
    }
    if (why !== undefined)
      this.#fault(why.law, `an append to ${append.runId} was accepted, though ${why.what}`)
    this.#change(() => this.#append(append), append.options.durability === 'barrier')
    const { lease } = append.options
    const run = this.runs.get(append.runId)
    if (lease && run && append.events.length > 0 && !hasEnded(run)) this.#giveLease(run, lease)
  }

  acquired(runId: RunId, claim: TakeOverClaim | undefined, answer: Head | { readonly error: unknown }): void {
    const run = this.runs.get(runId)
    const lease = run && this.#lasting(run)
    const isOthers = lease !== undefined && ![claim?.holder, claim?.from].includes(lease.holder)
    if ('error' in answer) {
      if (answer.error instanceof LedgerConflictError && !isOthers)
        this.#fault(10, `run ${runId} was not handed over, though nobody has its lease`)
      return
    }
    if (claim && isOthers)
      this.#fault(
        10,
        `${claim.holder} got run ${runId}, whose lease ${lease.holder} has for ${lease.until - this.#now()} ms`,
      )
    this.#change(() => {
      const taken = this.#run(runId)
      taken.epoch++
      if (!hasEnded(taken)) taken.dueAt = 0
    }, true)
    if (run === undefined) return
    if (claim) this.#giveLease(run, claim)
    else run.lease = undefined
    if (answer.epoch !== run.epoch)
      this.#fault(4, `run ${runId} got epoch ${answer.epoch}, and ${run.epoch} is the next`)
  }

  wasPut(runId: RunId, entry: InboxEntry, answer: boolean | { readonly error: unknown }): void {
    const run = this.runs.get(runId)
    if (typeof answer !== 'boolean') {
      const { error } = answer
      if (error instanceof LedgerConflictError && run && !hasEnded(run))
        this.#fault(15, `a command to ${runId} was refused, though the run has not ended`)
      return
    }
    if (run === undefined) return this.#fault(15, `a command to ${runId} was taken, and there is no such run`)
    if (answer === run.keys.has(entry.key))
      this.#fault(
        15,
        `the command ${entry.key} to ${runId} was ${answer ? 'taken twice' : 'taken for one before'}`,
      )
    if (answer && hasEnded(run)) this.#fault(15, `a command to ${runId} was taken, and the run has ended`)
    this.#change(() => this.#put(runId, entry), true)
  }

  readInbox(runId: RunId, entries: readonly InboxEntry[]): void {
    const expected = [...(this.runs.get(runId)?.inbox.keys() ?? [])]
    const found = entries.map(({ key }) => key)
    if (expected.join() !== found.join())
      this.#fault(
        15,
        `the inbox of ${runId} was read as [${found.join(', ')}], and holds [${expected.join(', ')}]`,
      )
  }

  readHead(runId: RunId, head: Head | undefined): void {
    const run = this.runs.get(runId)
    if (head?.seq === run?.events.length && head?.epoch === run?.epoch) return
    this.#fault(
      4,
      `the head of ${runId} was read as ${head?.seq} of epoch ${head?.epoch}, and is ${run?.events.length} of ${run?.epoch}`,
    )
  }

  renewed(runIds: readonly RunId[], claim: LeaseClaim, answer: readonly RunId[]): void {
    for (const runId of runIds) {
      const run = this.runs.get(runId)
      const isHolder = run?.lease?.holder === claim.holder
      if (isHolder !== answer.includes(runId))
        this.#fault(
          10,
          `${claim.holder} renewed its lease of ${runId}: ${!isHolder}, and has it: ${isHolder}`,
        )
      if (run && isHolder) this.#giveLease(run, claim)
    }
  }

  released(runId: RunId, holder: string, wait: RunWait | undefined): void {
    const run = this.runs.get(runId)
    if (run?.lease?.holder !== holder) return
    run.lease = undefined
    if (wait === undefined || hasEnded(run)) return
    const isAsked = run.inbox.size > 0 || (wait.children ?? []).some((id) => hasEnded(this.runs.get(id)))
    run.dueAt = isAsked ? 0 : wait.wakeAt
  }

  readDue({ before, after, limit }: DueFilter, found: readonly RunId[]): void {
    if (after !== undefined || limit !== undefined) return
    const expected = [...this.runs].flatMap(([runId, run]) =>
      run.dueAt !== undefined && Math.ceil(run.dueAt) <= before && !this.#lasting(run) ? [runId] : [],
    )
    const missing = expected.filter((runId) => !found.includes(runId))
    const extra = found.filter((runId) => !expected.includes(runId))
    if (missing.length > 0) this.#fault(10, `${missing.join(', ')} is due, and was not found`)
    if (extra.length > 0) this.#fault(10, `${extra.join(', ')} was found as due, and is not`)
  }

  /** Forgets what the disk forgets: all after the last barrier but the first `kept` changes. Leases are gone with it. */
  lostPower(kept: number): void {
    const changes = this.#changes.slice(0, this.#synced + kept)
    this.runs.clear()
    this.#changes = []
    for (const change of changes) this.#change(change, true)
  }

  #change(change: () => void, isBarrier: boolean): void {
    change()
    this.#changes.push(change)
    if (isBarrier) this.#synced = this.#changes.length
  }

  #run(runId: RunId): ModelRun {
    const there = this.runs.get(runId)
    if (there) return there
    const made: ModelRun = {
      events: [],
      epoch: 1,
      lease: undefined,
      inbox: new Map(),
      keys: new Set(),
      dueAt: 0,
    }
    this.runs.set(runId, made)
    return made
  }

  #append({ runId, expected, events, options }: Append): void {
    if (events.length > 0 && this.#isStored(runId, expected, events)) return
    const isNew = !this.runs.has(runId)
    if (isNew && events.length === 0) return
    const run = this.#run(runId)
    run.events.push(...events)
    for (const key of options.consumedInboxKeys ?? []) run.inbox.delete(key)
    if (hasEnded(run)) run.lease = run.dueAt = undefined
    const woken =
      options.wakes === undefined || events.length === 0 ? undefined : this.runs.get(options.wakes)
    if (woken && !hasEnded(woken)) woken.dueAt = 0
  }

  #put(runId: RunId, entry: InboxEntry): void {
    const run = this.#run(runId)
    if (run.keys.has(entry.key)) return
    run.keys.add(entry.key)
    run.inbox.set(entry.key, entry)
    run.dueAt = 0
  }

  #giveLease(run: ModelRun, { holder, forMs }: LeaseClaim): void {
    run.lease = { holder, until: this.#now() + forMs }
  }

  #lasting({ lease }: ModelRun): ModelRun['lease'] {
    return lease && lease.until > this.#now() ? lease : undefined
  }

  #isStored(runId: RunId, { expectedSeq }: ExpectedHead, events: readonly RuntimeEvent[]): boolean {
    const there = this.runs.get(runId)?.events ?? []
    if (there.length < expectedSeq + events.length) return false
    return events.every((event, index) => isSame(event, there[expectedSeq + index] as RuntimeEvent))
  }

  /** Why an append has to be refused. */
  #findRefusal({
    runId,
    expected,
    events,
    options,
  }: Append): { readonly law: number; readonly what: string } | undefined {
    if (events.length > 0 && this.#isStored(runId, expected, events)) return undefined
    const run = this.runs.get(runId)
    const { epoch = 1 } = run ?? {}
    const seq = run?.events.length ?? 0
    if (epoch !== expected.epoch)
      return { law: 10, what: `its writer has epoch ${expected.epoch}, and ${epoch} is the last` }
    if (seq !== expected.expectedSeq)
      return { law: 4, what: `it follows event ${expected.expectedSeq}, and ${seq} is the last` }
    const once = events.map(nameOnce).filter((name) => name !== undefined)
    const before = new Set(run?.events.map(nameOnce))
    const twice = once.find((name, index) => before.has(name) || once.indexOf(name) !== index)
    if (twice !== undefined) return { law: 1, what: `${twice} is on record before` }
    const ends = events.some(({ type }) => type === 'run_finished')
    const unread = [...(run?.inbox.keys() ?? [])].filter(
      (key) => !(options.consumedInboxKeys ?? []).includes(key),
    )
    if (ends && unread.length > 0)
      return { law: 15, what: `it ends the run with ${unread.join(', ')} unread` }
    const place = seq === 0 ? readPlace(events) : undefined
    const isTaken =
      place !== undefined && [...this.runs.values()].some((other) => readPlace(other.events) === place)
    return isTaken ? { law: 7, what: `another run has the place ${place}` } : undefined
  }
}

function hasEnded(run: ModelRun | undefined): boolean {
  const last = run?.events.at(-1)
  return last !== undefined && isAfterEnd(last)
}

function isSame(event: RuntimeEvent, other: RuntimeEvent): boolean {
  return event === other || toCanonicalJson(event) === toCanonicalJson(other)
}

/** Names what an event says that may be said once in a run. */
function nameOnce(event: RuntimeEvent): string | undefined {
  const { type, toolCallId } = event
  if (type === 'run_finished') return 'the end'
  if (type === 'tool_result') return `the result of ${toolCallId}`
  if (type === 'tool_started') return `start ${event.attempt} of ${toolCallId}`
  if (type === 'approval_decided' && !event.elsewhere) return `decision ${event.attempt} of ${toolCallId}`
  return undefined
}

function readPlace([first]: readonly RuntimeEvent[]): string | undefined {
  if (first?.type !== 'run_started' || first.sessionId === undefined) return undefined
  return `${first.sessionPlace ?? 1} of session ${first.sessionId}`
}
