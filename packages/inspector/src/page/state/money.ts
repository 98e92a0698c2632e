import { effect, signal } from '@preact/signals'
import type { RunNode } from '../../api.ts'
import type { Money } from '../worker/money.ts'
import { lastSeq, worker } from './open-run.ts'
import { runId } from './route.ts'
import { source } from './source.ts'

/** What the open run used. */
export const money = signal<Money | undefined>(undefined)
/** The open run and its child runs; `undefined` where no server can tell. */
export const tree = signal<RunNode | undefined>(undefined)

/** It is read again at most this often while events come. */
const refreshMs = 500

/** Keeps what the open run used as its events come. */
export function keepMoney(): () => void {
  let timer: ReturnType<typeof setTimeout> | undefined
  let of: string | undefined
  /** How long the last one took: of a long run it is read less often. */
  let tookMs = 0
  const read = async (): Promise<void> => {
    timer = undefined
    const id = runId.peek()
    if (id === undefined) return
    const since = performance.now()
    const made = await worker.readMoney()
    tookMs = performance.now() - since
    if (id !== runId.peek()) return
    money.value = made
    if (made.children.length === 0) return
    const read = await source
      .peek()
      .read<RunNode>(`runs/${id}/tree`)
      .catch(() => undefined)
    if (id === runId.peek()) tree.value = read
  }
  const stop = effect(() => {
    const id = runId.value
    if (id !== of) {
      of = id
      money.value = undefined
      tree.value = undefined
    }
    if (lastSeq.value > 0)
      timer ??= setTimeout(() => void read(), money.peek() ? Math.max(refreshMs, 10 * tookMs) : 0)
  })
  return () => {
    stop()
    clearTimeout(timer)
  }
}
