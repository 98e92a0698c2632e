import { memoryLedger, type Ledger } from '@tallystick/core'
import type { MakeStore } from '@tallystick/ledger/contract'

/** A store that keeps its promises, leaves an unhandled rejection at every append, and throws from a timer. */
const makeStore: MakeStore = () => {
  const sound = memoryLedger()
  return {
    lacks: ['durable', 'shared'],
    open: (): Ledger => ({
      ...sound,
      append: (...given) => {
        void Promise.reject(new Error('the replica is away'))
        return sound.append(...given)
      },
      acquire: (runId) => {
        setImmediate(() => {
          throw new Error('the heartbeat failed')
        })
        return sound.acquire(runId)
      },
    }),
  }
}

export default makeStore
