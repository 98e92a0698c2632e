import { signal } from '@preact/signals'
import type { RunNode } from '../../api.ts'
import type { Money } from '../worker/money.ts'
import { keepFresh } from './keep-fresh.ts'
import { worker } from './open-run.ts'
import { source } from './source.ts'

/** What the open run used. */
export const money = signal<Money | undefined>(undefined)
/** The open run and its child runs; `undefined` where no server can tell. */
export const tree = signal<RunNode | undefined>(undefined)

/** Keeps what the open run used as its events come. */
export function keepMoney(): () => void {
  return keepFresh({
    everyMs: 500,
    reset() {
      money.value = undefined
      tree.value = undefined
    },
    async read(id, isCurrent) {
      const made = await worker.readMoney()
      if (!isCurrent()) return
      money.value = made
      if (made.children.length === 0) return
      const nodes = await source
        .peek()
        .read<RunNode>(`runs/${id}/tree`)
        .catch(() => undefined)
      if (isCurrent()) tree.value = nodes
    },
  })
}
