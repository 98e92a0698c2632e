import { mkdirSync } from 'node:fs'
import { join, resolve } from 'node:path'

/** Where the demo keeps its ledger when nothing else is given. */
export const defaultLedgerPath: string = join('.tallystick', 'demo.db')

/** The files of the demo beside its ledger. */
export interface DemoFiles {
  readonly salesPath: string
  readonly ordersPath: string
}

/** Names the files that go with a ledger, in a folder beside it that is called like it, and makes that folder. */
export function demoFiles(ledgerPath: string): DemoFiles {
  const folder = `${resolve(ledgerPath)}-files`
  mkdirSync(folder, { recursive: true })
  return { salesPath: join(folder, 'sales.db'), ordersPath: join(folder, 'orders.db') }
}
