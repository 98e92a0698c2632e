import { mkdirSync } from 'node:fs'
import { join, resolve } from 'node:path'

/** The default path of the ledger. */
export const defaultLedgerPath: string = join('.tallystick', 'demo.db')

/** The demo's files next to its ledger. */
export interface DemoFiles {
  readonly salesPath: string
  readonly ordersPath: string
}

/** Creates the folder next to a ledger, named after it, and returns the paths of the files in it. */
export function demoFiles(ledgerPath: string): DemoFiles {
  const folder = `${resolve(ledgerPath)}-files`
  mkdirSync(folder, { recursive: true })
  return { salesPath: join(folder, 'sales.db'), ordersPath: join(folder, 'orders.db') }
}
