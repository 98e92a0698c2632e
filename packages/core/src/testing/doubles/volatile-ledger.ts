import { memoryLedger } from '../../ledger/memory-ledger.ts'
import type { AppendOptions, ExpectedHead, InboxEntry, Ledger, TakeOverClaim } from '../../ledger/ledger.ts'
import type { RuntimeEvent } from '../../events/event.ts'
import type { RunId } from '../../values/ids.ts'
import { LedgerUnavailableError } from '../../values/errors.ts'

/** A ledger whose machine may lose power. */
export interface VolatileLedger extends Ledger {
  /** Forgets what was appended after the last barrier, except the first `kept` of these appends. */
  losePower(kept?: number): Promise<void>
  /** The events that were acknowledged and forgotten. */
  readonly lost: readonly RuntimeEvent[]
}

/** A change of the ledger, as its disk holds it. */
type Change =
  | { readonly kind: 'append'; readonly runId: RunId; readonly given: Appended }
  | { readonly kind: 'acquire'; readonly runId: RunId; readonly claim: TakeOverClaim | undefined }
  | { readonly kind: 'put'; readonly runId: RunId; readonly entry: InboxEntry }

type Appended = readonly [ExpectedHead, readonly RuntimeEvent[], AppendOptions]

/**
 * A ledger in memory that distinguishes `barrier` from `lazy` appends: losing power loses lazy appends, unless a
 * barrier, a take-over or a put came after them. All runs share one log, as in SQLite and Postgres.
 */
export function volatileLedger(): VolatileLedger {
  let memory = memoryLedger()
  let changes: Change[] = []
  let synced = 0
  const lost: RuntimeEvent[] = []

  async function make<T>(change: Change, isBarrier: boolean): Promise<T> {
    const machine = memory
    const made = await carryOut(machine, change)
    if (machine !== memory) throw new LedgerUnavailableError('The machine of this ledger has lost power.')
    changes.push(change)
    if (isBarrier) synced = changes.length
    return made as T
  }

  return {
    ...memory,
    append: (runId, ...given) => make({ kind: 'append', runId, given }, given[2].durability === 'barrier'),
    acquire: (runId, claim) => make({ kind: 'acquire', runId, claim }, true),
    put: (runId, entry) => make({ kind: 'put', runId, entry }, true),
    head: (runId) => memory.head(runId),
    read: (...args) => memory.read(...args),
    find: (query) => memory.find(query),
    runs: (filter) => memory.runs(filter),
    inbox: (runId) => memory.inbox(runId),
    tail: (after) => memory.tail(after),
    changes: (...args) => memory.changes(...args),
    lease: (runId) => memory.lease(runId),
    renew: (...args) => memory.renew(...args),
    release: (...args) => memory.release(...args),
    isWhole: async (runId) => await memory.isWhole?.(runId),
    close: () => memory.close(),
    async losePower(kept = 0) {
      const forgotten = changes.slice(synced + kept)
      for (const change of forgotten) if (change.kind === 'append') lost.push(...change.given[1])
      changes = changes.slice(0, synced + kept)
      memory = memoryLedger()
      for (const change of changes) await carryOut(memory, withoutLease(change))
    },
    lost,
  }
}

/** Those who drove runs on the machine are gone with it. */
function withoutLease(change: Change): Change {
  if (change.kind === 'acquire') return { ...change, claim: undefined }
  if (change.kind !== 'append') return change
  const [expected, events, options] = change.given
  return { ...change, given: [expected, events, { ...options, lease: undefined }] }
}

function carryOut(memory: Ledger, change: Change): Promise<unknown> {
  switch (change.kind) {
    case 'append':
      return memory.append(change.runId, ...change.given)
    case 'acquire':
      return memory.acquire(change.runId, change.claim)
    case 'put':
      return memory.put(change.runId, change.entry)
  }
}

/** Whether the machine of a ledger can lose power. */
export function isVolatile(ledger: Ledger): ledger is VolatileLedger {
  return 'losePower' in ledger
}
