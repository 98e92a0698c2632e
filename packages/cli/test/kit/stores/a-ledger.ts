import { memoryLedger } from '@tallystick/core'

/** Makes a ledger where a store is to be made. */
export default () => memoryLedger()
