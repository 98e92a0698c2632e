// Writes the golden files: `npx -y pnpm@12 -F @tallystick/ledger golden`. Of the format that is written today all of them,
// as long as it is unreleased. The ledger and the export of an older format are never written again: only what today's
// code folds them to is. A release that changes the format raises `newestFormat`, and all formats are folded from then on.
// A ledger that would hold the same as before stays as it is: its salts and hashes would be others each time.
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
  storedRows,
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
  await inFolder(async (folder) => {
    const path = join(folder, 'runs.db')
    const ledger = sqliteLedger(path)
    await recordGoldenRuns(ledger)
    const lines = await Array.fromAsync(exportEvents(ledger))
    await ledger.close()
    const text = `${lines.join('\n')}\n`
    const isSame =
      existsSync(files.ledger) &&
      readFileSync(files.lines, 'utf8') === text &&
      storedRows(files.ledger) === storedRows(path)
    if (isSame) return
    copyFileSync(path, files.ledger)
    writeFileSync(files.lines, text)
  })
}

async function inFolder<Result>(use: (folder: string) => Promise<Result>): Promise<Result> {
  const folder = mkdtempSync(join(tmpdir(), 'tallystick-golden-'))
  try {
    return await use(folder)
  } finally {
    rmSync(folder, { recursive: true })
  }
}

/** Reads a copy of a golden ledger, since opening one may bring its schema up to date. */
async function withCopy<Result>(
  files: GoldenFiles,
  read: (ledger: Ledger) => Promise<Result>,
): Promise<Result> {
  return await inFolder(async (folder) => {
    const copy = join(folder, 'runs.db')
    copyFileSync(files.ledger, copy)
    const ledger = sqliteLedger(copy)
    try {
      return await read(ledger)
    } finally {
      await ledger.close()
    }
  })
}
