// What a process leaves that is killed while it takes content away, and what several processes leave that do so at once.
import { spawnSync } from 'node:child_process'
import { copyFileSync, existsSync } from 'node:fs'
import { type Ledger, type RunId, type RuntimeEvent } from '@tallystick/core'
import { redact, verifyLedger } from '@tallystick/ledger'
import { sqliteLedger } from '@tallystick/ledger/sqlite'
import { describe, expect, it } from 'vitest'
import { tries } from '../../../scripts/testing/effort.ts'
import { driveLookingRun } from './support/looking-run.ts'
import { killedAt, spread, stoppedAt, workDone } from './support/signalled-process.ts'
import { emptyLedgerFile, temporaryFile } from './support/temporary-folder.ts'

const asked = { by: 'ada', reason: 'asked for' }

/**
 * What the seventh call of the run asks, and what no other run says. The quotation mark belongs to it, since a time in
 * milliseconds or an id may hold the same digits.
 */
const secret = '"30007'

/** A closed ledger of two runs: content of the first is taken away, in several transactions, and none of the second. */
async function looked(): Promise<{ readonly path: string; readonly runId: RunId; readonly otherId: RunId }> {
  const path = emptyLedgerFile()
  const ledger = sqliteLedger(path, { deltaDelayMs: 0 })
  // Deltas come in several rows, neighbours of which the same is left share a removal.
  const pause = (): Promise<void> => new Promise((resolve) => void setImmediate(resolve))
  const runId = await driveLookingRun({ ledger, turns: 40, seed: 3, pause })
  const otherId = await driveLookingRun({ ledger, turns: 2, seed: 4, pause })
  await ledger.close()
  return { path, runId, otherId }
}

function eventsOf(ledger: Ledger, runId: RunId): Promise<readonly RuntimeEvent[]> {
  return Array.fromAsync(ledger.read(runId))
}

async function isSound(ledger: Ledger): Promise<boolean> {
  return (await Array.fromAsync(verifyLedger(ledger))).every(({ ok }) => ok)
}

/** Whether the file of a closed ledger, or its log, holds a text. */
function holds(path: string, text: string): boolean {
  const files = [path, `${path}-wal`].filter((file) => existsSync(file))
  return spawnSync('grep', ['-q', '-a', '-F', text, ...files]).status === 0
}

const isRemoved = (event: RuntimeEvent): boolean => event.removed !== undefined

describe('a redaction that is killed', () => {
  it('has taken away what its removals name, and the next one takes away the rest', async () => {
    const { path: recorded, runId, otherId } = await looked()
    expect(holds(recorded, secret)).toBe(true)
    const whole = temporaryFile()
    copyFileSync(recorded, whole)
    const { executed, done: total } = workDone({ task: 'redact', path: whole, runId })

    const left = new Set<number>()
    for (const statement of spread(executed, tries(24))) {
      const path = temporaryFile()
      copyFileSync(recorded, path)
      expect(killedAt({ task: 'redact', path, runId }, statement)).toBe(true)
      const ledger = sqliteLedger(path)
      expect((await eventsOf(ledger, otherId)).some(isRemoved)).toBe(false)
      const taken = (await eventsOf(ledger, runId)).filter(isRemoved).length
      left.add(taken)
      expect([statement, await isSound(ledger)]).toEqual([statement, true])
      expect([statement, taken + (await redact(ledger, runId, 'all', asked))]).toEqual([statement, total])
      expect((await eventsOf(ledger, runId)).filter(isRemoved)).toHaveLength(total as number)
      expect([statement, await isSound(ledger)]).toEqual([statement, true])
      await ledger.close()
      expect([statement, holds(path, secret)]).toEqual([statement, false])
    }
    expect(left).toContain(total as number)
    // A transaction takes away all that it is given, or nothing, and a redaction of this run has a handful of them.
    expect(left.size).toBeGreaterThan(1)
    expect(left.size).toBeLessThanOrEqual(8)
  })
})

describe('two processes that redact one run at once', () => {
  it('take each event away once between them, wherever the one is when the other does it', async () => {
    const { path: recorded, runId } = await looked()
    const whole = temporaryFile()
    copyFileSync(recorded, whole)
    const work = { task: 'redact', runId } as const
    const { executed: transactions } = await stoppedAt({ ...work, path: whole }, 0, () => Promise.resolve())
    let shared = 0
    for (const transaction of spread(transactions, tries(24))) {
      const path = temporaryFile()
      copyFileSync(recorded, path)
      let here = 0
      const { done } = await stoppedAt({ ...work, path }, transaction, async () => {
        const ledger = sqliteLedger(path)
        const every = await eventsOf(ledger, runId)
        const odd = every.filter((event) => event.seq % 2 === 1).map(({ seq }) => seq)
        here = await redact(ledger, runId, odd, asked)
        await ledger.close()
      })
      const there = done as number
      if (here > 0 && there > 0) shared++
      const ledger = sqliteLedger(path)
      const events = await eventsOf(ledger, runId)
      expect([transaction, here + there]).toEqual([transaction, events.length])
      expect(events.every(isRemoved)).toBe(true)
      expect([transaction, await isSound(ledger)]).toEqual([transaction, true])
      await ledger.close()
      expect([transaction, holds(path, secret)]).toEqual([transaction, false])
    }
    expect(shared).toBeGreaterThan(0)
  })
})
