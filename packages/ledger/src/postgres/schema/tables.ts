import type { Generated } from 'kysely'
import type { EventColumns, FactTable, InboxTable, PayloadTable, RunTable } from '../../record/tables.ts'

/** An event. Places of appends that were refused stay empty. */
export interface EventTable extends EventColumns {
  readonly pos: number
  /** The transaction that wrote it: with `pos` the order of the tail. Events of the first schema have 3. */
  readonly xid: Generated<string>
}

/** One row: what this schema is, and how far its migrations have come. */
export interface LedgerTable {
  readonly application: string
  readonly version: number
}

/** The schema of a ledger. */
export interface LedgerTables {
  readonly ledger: LedgerTable
  readonly run: RunTable
  readonly event: EventTable
  readonly payload: PayloadTable
  readonly inbox: InboxTable
  readonly fact: FactTable
}
