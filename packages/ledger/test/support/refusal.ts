import type { Ledger } from '@tallystick/core'

/** The error with which opening is refused; throws where it is not. */
export function refusalOf(open: () => Ledger): Error {
  try {
    open()
  } catch (error) {
    if (error instanceof Error) return error
  }
  throw new Error('The ledger was opened.')
}
