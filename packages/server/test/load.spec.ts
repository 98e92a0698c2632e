import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { playFollowing } from '../bench/load/following-load.ts'
import { playStarting } from '../bench/load/starting-load.ts'
import { temporaryFolder } from '../../../scripts/testing/temporary-folder.ts'

function ledgerFile(): string {
  const folder = temporaryFolder()
  return join(folder, 'runs.db')
}

// `pnpm load` plays the same with thousands of readers and starts, and prints how long they wait.
describe('a serving process under load', () => {
  it('is killed, and another one takes its runs and readers over: nothing is lost, and nothing comes twice', async () => {
    const plan = { path: ledgerFile(), runs: 12, readers: 120, seconds: 4, rate: 8, isKilled: true }
    const { faults, reconnected, runs } = await playFollowing(plan)
    expect(faults).toEqual([])
    expect(reconnected).toBe(120)
    expect(runs).toBe(52)
  })

  it('starts what it acknowledges, each run once', async () => {
    const { faults, runs } = await playStarting({ path: ledgerFile(), perSecond: 200, seconds: 2 })
    expect(faults).toEqual([])
    expect(runs).toBe(400)
  })
})
