import type { Ledger, RunId } from '@tallystick/core'
import { foldTo } from '@tallystick/ledger'
import { ownWaits } from './waits.ts'

/**
 * Waits until a run that waits for another was told that this one has ended: the runtime does that behind the result
 * of the one that ended, and nobody may close the ledger before.
 */
export async function untilTold(ledger: Ledger, employer: RunId, worker: RunId): Promise<void> {
  let wake = (): void => {}
  let changed = Promise.resolve()
  const listen = (): void => {
    changed = new Promise((resolve) => {
      wake = resolve
    })
  }
  const hints = ledger.changes(employer).subscribe(() => wake())
  try {
    for (;;) {
      listen()
      if (await isTold(ledger, employer, worker)) return
      await changed
    }
  } finally {
    hints.unsubscribe()
  }
}

async function isTold(ledger: Ledger, employer: RunId, worker: RunId): Promise<boolean> {
  for (const { command } of await ledger.inbox(employer)) {
    if (command.type === 'settle' && command.child?.runId === worker) return true
  }
  const { children } = ownWaits(await foldTo(ledger, employer))
  return children.every(({ runId }) => runId !== worker)
}
