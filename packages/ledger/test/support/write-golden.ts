// Writes the golden files: `npx -y pnpm@12 -F @tallystick/ledger golden`. Of the format that is written today all of them,
// as long as it is unreleased. The ledger and the export of an older format are never written again: only what today's
// code folds them to is. A release that changes the format raises `newestFormat`, and all formats are folded from then on.
import { copyFileSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Ledger } from '@tallystick/core'
import { exportEvents } from '@tallystick/ledger'
import { sqliteLedger } from '@tallystick/ledger/sqlite'
import { recordGoldenRuns } from './golden-runs.ts'
import {
  goldenFiles,
  goldenStates,
  goldenVersions,
  newestFormat,
  staleVersions,
  type GoldenFiles,
  type GoldenVersions,
} from './golden.ts'

const formats = Array.from({ length: newestFormat }, (_, index) => goldenFiles(index + 1))
for (const files of formats) await requireRaisedVersions(files)
await writeLedger(goldenFiles(newestFormat))
for (const files of formats) {
  const states = await withCopy(files, goldenStates)
  writeFileSync(files.states, `${JSON.stringify(states, null, 2)}\n`)
  writeFileSync(files.versions, `${JSON.stringify(await withCopy(files, goldenVersions), null, 2)}\n`)
  process.stdout.write(`${files.ledger}: ${states.length} runs\n`)
}

async function requireRaisedVersions(files: GoldenFiles): Promise<void> {
  if (!existsSync(files.versions) || !existsSync(files.ledger)) return
  const before = JSON.parse(readFileSync(files.versions, 'utf8')) as GoldenVersions
  const stale = staleVersions(before, await withCopy(files, goldenVersions))
  if (stale.length > 0) {
    throw new Error(`The golden ledger comes out otherwise: raise ${stale.join(' and ')}.`)
  }
}

async function writeLedger(files: GoldenFiles): Promise<void> {
  for (const suffix of ['', '-wal', '-shm']) rmSync(files.ledger + suffix, { force: true })
  const ledger = sqliteLedger(files.ledger)
  await recordGoldenRuns(ledger)
  const lines = await Array.fromAsync(exportEvents(ledger))
  await ledger.close()
  writeFileSync(files.lines, `${lines.join('\n')}\n`)
}

/** Reads a copy of a golden ledger, since opening one may bring its schema up to date. */
async function withCopy<Result>(
  files: GoldenFiles,
  read: (ledger: Ledger) => Promise<Result>,
): Promise<Result> {
  const folder = mkdtempSync(join(tmpdir(), 'tallystick-golden-'))
  const copy = join(folder, 'runs.db')
  copyFileSync(files.ledger, copy)
  const ledger = sqliteLedger(copy)
  try {
    return await read(ledger)
  } finally {
    await ledger.close()
    rmSync(folder, { recursive: true })
  }
}
