// How long a process holds the lease of a run: as long as it drives that run, and no longer.
import { expect, it } from 'vitest'
import { LedgerUnavailableError, memoryLedger, type Ledger } from '@tallystick/core'
import { manualClock, testTool } from '@tallystick/core/testing'
import { stage } from './stage.ts'

const payStep = { toolCalls: [{ name: 'pay', input: {} }] }

function payTool() {
  return testTool({ name: 'pay', effect: 'write', check: () => ({ kind: 'ask' }) })
}

it('given a run that cannot be read when it was taken over, then its lease ends by time, though it cannot be released', async () => {
  const clock = manualClock()
  const ledger = memoryLedger({ clock })
  let isTaken = false
  const failing: Ledger = {
    ...ledger,
    acquire: async (...given) => {
      const head = await ledger.acquire(...given)
      isTaken = true
      return head
    },
    read: (...given) => {
      if (isTaken) throw new LedgerUnavailableError('The disk is gone.')
      return ledger.read(...given)
    },
    release: () => Promise.reject(new LedgerUnavailableError('The disk is gone.')),
  }
  const steps = [payStep, { text: 'Paid.' }]
  const first = stage({ steps, tools: [payTool()], clock, ledger })
  const run = first.start()
  await first.untilSettled(run.result)
  const second = stage({ steps, tools: [payTool()], clock, ledger: failing })
  await expect(second.untilSettled(second.runtime.resume(run.id).result)).rejects.toThrow('The disk is gone.')
  expect(await ledger.lease(run.id)).toBeDefined()
  for (let seconds = 0; seconds < 30; seconds++) {
    clock.advance(1_000)
    for (let turn = 0; turn < 20; turn++) await Promise.resolve()
  }
  expect(await ledger.lease(run.id)).toBeUndefined()
})
