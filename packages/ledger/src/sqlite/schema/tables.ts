import type { GeneratedAlways } from 'kysely'
import type { RemovalRow } from '../../record/removal.ts'
import type { EventColumns, FactTable, InboxTable, PayloadTable, RunTable } from '../../record/tables.ts'

/** An event. `pos` is its place in the file, in the order of commits. */
export interface EventTable extends EventColumns {
  readonly pos: GeneratedAlways<number>
}

/** One row that a barrier raises when it has nothing else to write, so that its commit reaches the disk. */
export interface BarrierTable {
  readonly id: number
  readonly count: number
}

/** The schema of a ledger file. */
export interface LedgerTables {
  readonly run: RunTable
  readonly event: EventTable
  readonly payload: PayloadTable
  readonly inbox: InboxTable
  readonly barrier: BarrierTable
  readonly removal: RemovalRow
  readonly fact: FactTable
}
