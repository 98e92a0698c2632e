import { LedgerDamagedError, type Ledger, type RunId, type RuntimeEvent } from '@tallystick/core'
import { option, type OptionCheck } from '@tallystick/core/kit'
import {
  closedByUsing,
  OpenUses,
  type OpenLedger,
  requireAppend,
  requireInboxKey,
  requirePut,
  requireTextId,
  requireWellFormed,
  storableText,
  takesEntries,
} from '@tallystick/core/store-kit'
import type { AppendOptions, ExpectedHead, Head, InboxEntry } from '@tallystick/core/vocabulary'
import { encodeEvent } from '../format/body.ts'
import type { Keyring, Sealer } from '../format/keyring.ts'
import { findEvents } from './find-events.ts'
import { internals, type Internals } from './internals.ts'
import { RowReader } from './readable-rows.ts'
import { readEvents } from './read-events.ts'
import { redact } from './redact.ts'
import { AppendOrder, RunKeys } from './run-keys.ts'
import type { InboxRow, Store } from './store.ts'
import { tailEvents } from './tail-events.ts'

/** How a store is opened as a ledger. */
export interface LedgerSettings {
  readonly keys?: Keyring | undefined
  readonly deltaDelayMs: number
}

const maxDelayMs = 1_000

/** Checks the option `deltaDelayMs`. */
export const deltaDelay: OptionCheck = option.valueThat(
  `a whole number of milliseconds from 0 to ${maxDelayMs}`,
  (value) => Number.isInteger(value) && (value as number) >= 0 && (value as number) <= maxDelayMs,
)

/** Makes a ledger of a store: checks what it is given, encodes events, and checks and decodes what it reads. */
export function openLedger(store: Store, { keys: keyring, deltaDelayMs }: LedgerSettings): OpenLedger {
  const rows = new RowReader(store, keyring)
  const order = new AppendOrder()
  const keys = new RunKeys(keyring, (runId) => store.keyIdOf(runId))
  const uses = new OpenUses()
  let closing: Promise<void> | undefined
  const write = (
    given: {
      readonly runId: RunId
      readonly expected: ExpectedHead
      readonly events: readonly RuntimeEvent[]
    },
    { durability, consumedInboxKeys: takes = [], lease }: AppendOptions,
    sealer: Sealer | undefined,
  ): Promise<Head> => {
    const { runId, expected } = given
    const events = given.events.map((event) => encodeEvent(event, sealer))
    return store.append({ runId, expected, events, durability, takes, lease, isSealed: sealer !== undefined })
  }
  const ledger: Ledger & { readonly [internals]: Internals } = {
    deltaDelayMs,
    async append(runId, expected, events, options) {
      requireAppend(runId, expected, events)
      store.requireOpen()
      requireWellFormed(runId, expected, events)
      const given = { runId, expected, events }
      const isPlain = keys.isPlain(runId, events)
      const head = await order.begin(runId, !isPlain, () =>
        isPlain
          ? write(given, options, undefined)
          : keys.sealing(runId, events, (sealer) => write(given, options, sealer)),
      )
      store.changed(runId, takesEntries(options))
      return head
    },
    async acquire(runId, claim) {
      requireTextId('ledger.acquire', runId)
      store.requireOpen()
      const head = await store.acquire(runId, claim)
      store.changed(runId, true)
      return head
    },
    async head(runId) {
      requireTextId('ledger.head', runId)
      return await store.head(runId)
    },
    read: (runId, range) => readEvents(store, rows, runId, range),
    find: (query) => findEvents(store, rows, query),
    runs: (filter) => store.runs(filter),
    async put(runId, entry) {
      requirePut(runId, entry)
      requireInboxKey(entry.key)
      const { key, at, command } = entry
      const text = storableText(command, `The command under ${key} for run ${runId}`)
      const isNew = await store.put(runId, { key, at, command: text })
      if (isNew) store.changed(runId, true)
      return isNew
    },
    async inbox(runId) {
      requireTextId('ledger.inbox', runId)
      return (await store.inbox(runId)).map((row) => inboxEntry(runId, row))
    },
    tail: (after) => tailEvents(store, rows, after),
    changes: (runId, part) => store.changes(runId, part),
    async lease(runId) {
      requireTextId('ledger.lease', runId)
      return await store.lease(runId)
    },
    renew: (runIds, claim) => store.renew(runIds, claim),
    release: (runId, holder) => store.release(runId, holder),
    // Sealed content goes with its key, of which the store knows nothing.
    async isWhole(runId) {
      requireTextId('ledger.isWhole', runId)
      return keyring ? undefined : !(await store.hasLost(runId))
    },
    removeContent: async (runId, why) => void (await redact(ledger, runId, 'all', why)),
    beforeClose: (end) => uses.add(end),
    close() {
      closing ??= uses.closeAfter(() => store.close())
      return closing
    },
    [internals]: { store, rows },
  }
  return closedByUsing(ledger)
}

function inboxEntry(runId: RunId, { key, at, command }: InboxRow): InboxEntry {
  try {
    return { key, at, command: JSON.parse(command) as InboxEntry['command'] }
  } catch (cause) {
    throw new LedgerDamagedError(
      `The inbox of run ${runId} is damaged: the command under ${key} cannot be read. Run verify on the ledger, and ` +
        'restore a copy.',
      { cause },
    )
  }
}
