// Writes the golden files of the format that is written today: `npx -y pnpm@12 -F @tallystick/ledger golden`.
// Run it again as long as the format is unreleased. The files of a released format are never written again: a release
// that changes the format raises the number here, and both are folded from then on.
import { copyFileSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { exportEvents } from '@tallystick/ledger'
import { sqliteLedger } from '@tallystick/ledger/sqlite'
import { recordGoldenRuns } from './golden-runs.ts'
import { goldenFiles, goldenStates, goldenVersions, staleVersions, type GoldenVersions } from './golden.ts'

const files = goldenFiles(1)
if (existsSync(files.versions) && existsSync(files.ledger)) {
  const before = JSON.parse(readFileSync(files.versions, 'utf8')) as GoldenVersions
  const stale = staleVersions(before, await versionsOfFile())
  if (stale.length > 0) {
    throw new Error(`The golden ledger comes out otherwise: raise ${stale.join(' and ')}.`)
  }
}
for (const beside of ['', '-wal', '-shm']) rmSync(files.ledger + beside, { force: true })
const ledger = sqliteLedger(files.ledger)
await recordGoldenRuns(ledger)
const lines = await Array.fromAsync(exportEvents(ledger))
const states = await goldenStates(ledger)
await ledger.close()
writeFileSync(files.lines, `${lines.join('\n')}\n`)
writeFileSync(files.states, `${JSON.stringify(states, null, 2)}\n`)
writeFileSync(files.versions, `${JSON.stringify(await versionsOfFile(), null, 2)}\n`)
process.stdout.write(`${states.length} runs, ${lines.length} events\n`)

/** What the code of now makes of the golden ledger. Of a copy, since that writes projections. */
async function versionsOfFile(): Promise<GoldenVersions> {
  const folder = mkdtempSync(join(tmpdir(), 'tallystick-golden-'))
  const copy = join(folder, 'runs.db')
  copyFileSync(files.ledger, copy)
  const copied = sqliteLedger(copy)
  try {
    return await goldenVersions(copied)
  } finally {
    await copied.close()
    rmSync(folder, { recursive: true })
  }
}
