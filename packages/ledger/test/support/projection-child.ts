// A process of its own that brings the projections of a ledger up to date again and again, until its input ends. It says
// `ready` when it has done so once, and at the end how often. Usage: projection-child.ts FILE, or projection-child.ts
// CONNECTION_STRING SCHEMA
import { postgresLedger } from '@tallystick/ledger/postgres'
import { sqliteLedger } from '@tallystick/ledger/sqlite'
import { getDatabase } from '../../src/store/store.ts'
import { refreshProjections } from '../../src/projection/projections.ts'

const [place = '', schema] = process.argv.slice(2)
const ledger =
  schema === undefined ? sqliteLedger(place) : postgresLedger({ connectionString: place, schema })
const database = getDatabase(ledger)
if (database === undefined) throw new Error('The ledger keeps no projections.')

const input = process.stdin.resume()
let times = 0
while (!input.readableEnded) {
  await refreshProjections(ledger, database, () => {})
  if (++times === 1) process.stdout.write('ready\n')
  // Lets the end of its input be heard.
  await new Promise((resolve) => setImmediate(resolve))
}
await ledger.close()
process.stdout.write(`${times}\n`)
