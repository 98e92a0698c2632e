import type { Ledger, RunId, RuntimeEvent } from '@tallystick/core'
import { eventType, option, type Schema, requireOptions, someLedger } from '@tallystick/core/internal'
import type { AppendOptions, EventType, ExpectedHead, Head } from '@tallystick/core/vocabulary'
import { isVolatile, wrapLedger } from '../doubles/ledger.ts'
import { recordedEvents } from '../judges/laws.ts'

const { fields, maybe, numberFrom, trueOrFalse, valueThat } = option

/** Where a process dies: at its `append`-th append (from 1), with the events lost or stored. */
export interface CrashPoint {
  readonly append: number
  readonly stored: boolean
  /** Counts only the appends that follow the first event of this type, such as `tool_started`: then a tool is at work. */
  readonly after?: EventType | undefined
  /**
   * With it the machine loses power, too: of the appends since the last barrier, so many are left, the first. The ledger
   * has to be a `volatileLedger`.
   */
  readonly unsyncedKept?: number | undefined
}

/** A point that a process reaches: one that it does not would leave a test green, and no process dead. */
export const crashPoint: Schema = fields<CrashPoint>(
  {
    append: numberFrom(1, { whole: true }),
    stored: trueOrFalse,
    after: maybe(eventType),
    unsyncedKept: maybe(numberFrom(0, { whole: true })),
  },
  { at: 'append', atAppend: 'append', lost: 'stored' },
)

/** Thrown by the ledger of a process that has died. */
export class SimulatedCrash extends Error {
  constructor() {
    super('The process died here.')
    this.name = 'SimulatedCrash'
  }
}

/** A ledger as one process sees it, which dies at a given append: from then on every call rejects. */
export interface MortalLedger extends Ledger {
  readonly dead: boolean
  /** Appends so far. */
  readonly appends: number
  /** Events that this process knows to be durable: acknowledged by a barrier, or before one. */
  readonly durable: readonly RuntimeEvent[]
  /** Events that this process knows to be on record, durable or not. */
  readonly acknowledged: readonly RuntimeEvent[]
}

/** A ledger that can lose unsynced appends: with any other, the test would pass without testing anything. */
const ledgerThatLosesPower: Schema = valueThat(
  'a ledger that can lose power, such as volatileLedger()',
  (ledger) => isVolatile(ledger as Ledger),
)

/** A process's view of a ledger, which dies at `crash`; without one it lives for ever. */
export function mortalLedger(ledger: Ledger, crash?: CrashPoint): MortalLedger {
  requireOptions('mortalLedger', someLedger, ledger, 'the ledger')
  requireOptions('mortalLedger', maybe(crashPoint), crash, 'the crash')
  if (crash?.unsyncedKept !== undefined)
    requireOptions('mortalLedger', ledgerThatLosesPower, ledger, 'the ledger')
  let dead = false
  let appends = 0
  let counted = 0
  let isCounting = crash?.after === undefined
  const durable: RuntimeEvent[] = []
  const acknowledged: RuntimeEvent[] = []
  /** The drivers of runs, as known to this ledger. */
  const driven = new Map<RunId, string>()
  const drives = (runId: RunId, claim: { readonly holder: string } | undefined): void => {
    if (claim) driven.set(runId, claim.holder)
  }
  const requireAlive = (): void => {
    if (dead) throw new SimulatedCrash()
  }
  const alive = async <T>(call: () => Promise<T>): Promise<T> => {
    requireAlive()
    try {
      return await call()
    } catch (error) {
      // Appends in flight when the process died are never answered.
      requireAlive()
      throw error
    }
  }
  const die = async (): Promise<never> => {
    dead = true
    if (crash?.unsyncedKept !== undefined && isVolatile(ledger)) await ledger.losePower(crash.unsyncedKept)
    // Its machine sees that the process is gone: nobody waits for its leases.
    for (const [runId, holder] of driven) await ledger.release(runId, holder)
    throw new SimulatedCrash()
  }
  async function* aliveFor<T>(items: AsyncIterable<T>): AsyncGenerator<T> {
    for await (const item of items) {
      requireAlive()
      yield item
    }
  }
  const append = async (
    runId: RunId,
    expected: ExpectedHead,
    events: readonly RuntimeEvent[],
    options: AppendOptions,
  ): Promise<Head> => {
    requireAlive()
    appends++
    if (isCounting) counted++
    else isCounting = events.some(({ type }) => type === crash?.after)
    const dies = crash?.append === counted
    if (dies && !crash.stored) return await die()
    drives(runId, options.lease)
    const head = await alive(() => ledger.append(runId, expected, events, options))
    if (dies) return await die()
    for (const event of events) acknowledged.push(event)
    if (options.durability === 'barrier')
      for (const event of acknowledged.slice(durable.length)) durable.push(event)
    return head
  }
  return {
    ...wrapLedger(() => ledger, { call: alive, each: aliveFor }),
    append,
    acquire: (runId, claim) =>
      alive(async () => {
        const head = await ledger.acquire(runId, claim)
        drives(runId, claim)
        return head
      }),
    release: async (...given) => {
      if (!dead) await ledger.release(...given)
    },
    close: () => Promise.resolve(),
    get dead() {
      return dead
    },
    get appends() {
      return appends
    },
    durable,
    acknowledged,
  }
}

/** Copies the first events of a run into another ledger, take-overs included: a run that was cut off there. */
export async function copyPrefix(events: readonly RuntimeEvent[], ledger: Ledger): Promise<void> {
  requireOptions('copyPrefix', recordedEvents, events, 'events')
  requireOptions('copyPrefix', someLedger, ledger, 'the ledger')
  let epoch = 1
  for (const event of events) {
    while (epoch < event.epoch) epoch = (await ledger.acquire(event.runId)).epoch
    const expected = { expectedSeq: event.seq - 1, epoch }
    await ledger.append(event.runId, expected, [event], { durability: 'barrier' })
  }
}
