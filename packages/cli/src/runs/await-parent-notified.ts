import type { Ledger, RunId } from '@tallystick/core'
import { foldTo } from '@tallystick/ledger'
import { ownWaits } from './waits.ts'

/**
 * Waits until the parent of a child run has the command that settles its call. The runtime puts it behind the result of
 * the child, so closing the ledger earlier would lose it.
 */
export async function awaitParentNotified(ledger: Ledger, parent: RunId, child: RunId): Promise<void> {
  let wake = (): void => {}
  let changed = Promise.resolve()
  const listen = (): void => {
    changed = new Promise((resolve) => {
      wake = resolve
    })
  }
  const hints = ledger.changes(parent).subscribe(() => wake())
  try {
    for (;;) {
      listen()
      if (await isParentNotified(ledger, parent, child)) return
      await changed
    }
  } finally {
    hints.unsubscribe()
  }
}

async function isParentNotified(ledger: Ledger, parent: RunId, child: RunId): Promise<boolean> {
  for (const { command } of await ledger.inbox(parent)) {
    if (command.type === 'settle' && command.child?.runId === child) return true
  }
  const { children } = ownWaits(await foldTo(ledger, parent))
  return children.every(({ runId }) => runId !== child)
}
