import { join } from 'node:path'
import { manualClock, sampleRunId } from '@tallystick/testkit'
import { expect, it } from 'vitest'
import { OperationLog } from '../src/operation-log.ts'
import { temporaryFolder } from '../../../scripts/testing/temporary-folder.ts'

const operation = { do: 'acquire', runId: sampleRunId(1) } as const

/** A log with a clock that the test moves, and the number of its background syncs. */
function timedLog(sync: () => Promise<void> = async () => {}) {
  const folder = temporaryFolder()
  const clock = manualClock()
  let syncs = 0
  const host = {
    schedule: (delayMs: number, callback: () => void) => clock.schedule(delayMs, callback),
    sync: () => {
      syncs++
      return sync()
    },
  }
  const log = new OperationLog(join(folder, 'runs.jsonl'), host)
  return { log, clock, syncs: () => syncs }
}

it('syncs what was written lazily after a fifth of a second, once for many lines', async () => {
  const { log, clock, syncs } = timedLog()
  log.write(operation, false)
  clock.advance(150)
  log.write(operation, false)
  clock.advance(49)
  expect(syncs()).toBe(0)
  clock.advance(1)
  expect([syncs(), clock.pending]).toEqual([1, 0])
  log.write(operation, false)
  clock.advance(200)
  expect(syncs()).toBe(2)
  await log.close()
})

it('needs no sync of its own where a barrier or the close follows', async () => {
  const { log, clock, syncs } = timedLog()
  log.write(operation, false)
  log.write(operation, true)
  expect(clock.pending).toBe(0)
  log.write(operation, false)
  await log.close()
  expect([syncs(), clock.pending]).toEqual([0, 0])
})

it('takes nothing more once a sync has failed: what the disk holds is not known', async () => {
  const failing = Promise.reject(new Error('The disk is gone.'))
  const { log, clock } = timedLog(() => failing)
  log.write(operation, false)
  clock.advance(200)
  await failing.catch(() => {})
  expect(() => log.write(operation, false)).toThrow('The disk is gone.')
  await log.close()
})
