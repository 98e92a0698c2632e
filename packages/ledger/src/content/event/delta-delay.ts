import { option, type OptionCheck } from '@tallystick/core/kit'

/** How long deltas of a reply wait for more unless the ledger is given another time, in milliseconds. */
export const deltaDelayMsUnlessGiven = 20

const maxDelayMs = 1_000

/** What the option `deltaDelayMs` may be. */
export const deltaDelay: OptionCheck = option.valueThat(
  `a whole number of milliseconds from 0 to ${maxDelayMs}`,
  (value) => Number.isInteger(value) && (value as number) >= 0 && (value as number) <= maxDelayMs,
)
