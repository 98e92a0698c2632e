import { memoryLedger } from '@tallystick/core'
import type { MakeStore } from '@tallystick/ledger/contract'

/** A store whose search does not mind the type, which hints at nothing, and which outlives no process. */
const makeStore: MakeStore = () => ({
  lacks: ['durable', 'shared'],
  open: () => {
    const sound = memoryLedger()
    return {
      ...sound,
      find: ({ types: _types, ...query } = {}) => sound.find(query),
      changes: (runId) => sound.changes(`not ${runId}` as NonNullable<typeof runId>),
    }
  },
})
export default makeStore
