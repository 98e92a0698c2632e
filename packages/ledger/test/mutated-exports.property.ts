import { readFileSync } from 'node:fs'
import { memoryLedger, type Ledger } from '@tallystick/core'
import { foldTo, importEvents, readRunSummaries, splitLines, verifyLedger } from '@tallystick/ledger'
import { sqliteLedger } from '@tallystick/ledger/sqlite'
import * as fc from 'fast-check'
import { expect, it } from 'vitest'
import { tries } from '../../../scripts/testing/effort.ts'
import { findUnclear, mutatedBytes } from '../../../scripts/testing/mutated.ts'
import { goldenFiles, newestFormat } from './support/golden.ts'
import { temporaryFolder } from './support/temporary-folder.ts'

/** Every kind of event, a file of lines for each run. */
function readExports(): readonly Uint8Array[] {
  const runs = new Map<string, string[]>()
  for (const line of readFileSync(goldenFiles(newestFormat).lines, 'utf8').trim().split('\n')) {
    const { runId } = JSON.parse(line) as { readonly runId: string }
    runs.set(runId, [...(runs.get(runId) ?? []), line])
  }
  return [...runs.values()].map((lines) => new TextEncoder().encode(`${lines.join('\n')}\n`))
}

async function* inOnePiece(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield bytes
}

/** What is unclear about how an export is taken, and about each use of what was taken of it. */
async function findFault(ledger: Ledger, bytes: Uint8Array): Promise<string | undefined> {
  const uses = [
    async () => await importEvents(ledger, splitLines(inOnePiece(bytes))),
    async () => {
      for await (const { runId } of ledger.runs()) await foldTo(ledger, runId)
    },
    async () => await Array.fromAsync(readRunSummaries(ledger)),
  ]
  for (const use of uses) {
    try {
      await use()
    } catch (error) {
      const unclear = findUnclear(error)
      if (unclear !== undefined) return unclear
    }
  }
  return undefined
}

it('an export in which something is wrong is imported, or refused with what is wrong', async () => {
  const folder = temporaryFolder()
  let files = 0
  await fc.assert(
    fc.asyncProperty(mutatedBytes(readExports()), async (bytes) => {
      expect(await findFault(memoryLedger(), bytes)).toBe(undefined)
      await using file = sqliteLedger(`${folder}/${++files}.db`)
      expect(await findFault(file, bytes)).toBe(undefined)
      // What was taken is as if it had been recorded here.
      expect(await Array.fromAsync(verifyLedger(file), ({ ok }) => ok)).not.toContain(false)
    }),
    { numRuns: tries(1_500) },
  )
})
