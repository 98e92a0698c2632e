import type { Ledger, RunId, RunState } from '@tallystick/core'
import { evolve } from '@tallystick/core/machine'
import { caughtUp, changesOf } from '@tallystick/core/store-kit'
import { foldTo } from '@tallystick/ledger'
import { ownWaits } from './run-status.ts'

/**
 * Waits until the parent of a child run has the command that settles its call. The runtime puts it after the child run
 * has its result, so closing the ledger earlier would lose it.
 */
export async function awaitParentNotified(ledger: Ledger, parent: RunId, child: RunId): Promise<void> {
  let state = await foldTo(ledger, parent)
  for await (const event of changesOf(ledger, parent, { after: state.seq })) {
    if (event !== caughtUp) state = evolve(state, event)
    else if (await isParentNotified(ledger, state, child)) return
  }
}

async function isParentNotified(ledger: Ledger, parent: RunState, child: RunId): Promise<boolean> {
  for (const { command } of await ledger.inbox(parent.runId)) {
    if (command.type === 'settle' && command.child?.runId === child) return true
  }
  return ownWaits(parent).children.every(({ runId }) => runId !== child)
}
