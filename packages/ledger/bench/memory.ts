// Goes through all of a ledger file in this process, by a search and by verifying, and says what memory it took at
// most, in bytes. Usage: memory.ts FILE
import { verifyLedger } from '../src/verify/verify.ts'
import { sqliteLedger } from '../src/sqlite/sqlite-ledger.ts'

const ledger = sqliteLedger(process.argv[2] ?? '', { readOnly: true })
let events = 0
for await (const { seq } of ledger.find()) if (seq > 0) events++
for await (const verdict of verifyLedger(ledger)) if (!verdict.ok) throw new Error('The ledger is not sound.')
await ledger.close()
console.log(JSON.stringify({ events, maxBytes: process.resourceUsage().maxRSS * 1024 }))
