import { memoryLedger, type Ledger } from '@tallystick/core'
import type { MakeStore } from '@tallystick/ledger/contract'

/** A store on a full disk: it can be opened and read, and nothing can be appended or removed. */
const makeStore: MakeStore = () => ({
  open: (): Ledger => ({
    ...memoryLedger(),
    append: () => Promise.reject(new Error('no space left on device')),
  }),
  remove: () => Promise.reject(new Error('the folder is busy')),
  lacks: ['durable', 'shared'],
})

export default makeStore
