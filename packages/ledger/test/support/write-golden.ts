// Writes the golden files of the format that is written today: `npx -y pnpm@12 -F @tallystick/ledger golden`.
// Run it again as long as the format is unreleased. The files of a released format are never written again: a release
// that changes the format raises the number here, and both are folded from then on.
import { rmSync, writeFileSync } from 'node:fs'
import { exportEvents } from '@tallystick/ledger'
import { sqliteLedger } from '@tallystick/ledger/sqlite'
import { recordGoldenRuns } from './golden-runs.ts'
import { goldenFiles, goldenStates } from './golden.ts'

const files = goldenFiles(1)
for (const beside of ['', '-wal', '-shm']) rmSync(files.ledger + beside, { force: true })
const ledger = sqliteLedger(files.ledger)
await recordGoldenRuns(ledger)
const lines = await Array.fromAsync(exportEvents(ledger))
const states = await goldenStates(ledger)
await ledger.close()
writeFileSync(files.lines, `${lines.join('\n')}\n`)
writeFileSync(files.states, `${JSON.stringify(states, null, 2)}\n`)
process.stdout.write(`${states.length} runs, ${lines.length} events\n`)
