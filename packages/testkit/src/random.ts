import { ConfigurationError } from '@tallystick/core'
import type * as arbitraries from './properties/arbitraries.ts'

// Arbitraries of fast-check, an import of which without it says what to install.

// A static import would fail before any line of this file runs.
const loaded = await import('./properties/arbitraries.ts').catch((error: unknown) => {
  throw new ConfigurationError(
    '@tallystick/testkit/random needs the package fast-check, which is not installed or could not be loaded. Add it: npm install --save-dev fast-check.',
    { cause: error },
  )
})

/**
 * What a model says, reply by reply: texts, reasoning, calls that are valid and broken, refusals, cut replies, every class of
 * failure, slow and very long ones. Takes the inputs of the calls, by tool: `scriptedModel` plays it.
 */
export const randomScript: typeof arbitraries.randomScript = loaded.randomScript
/** Tools of any kind: each outcome, late, hanging, ending twice, throwing strangely, with progress. Takes the name. */
export const randomTool: typeof arbitraries.randomTool = loaded.randomTool
/** Inputs that a JSON Schema allows, with hostile texts among them. */
export const randomInput: typeof arbitraries.randomInput = loaded.randomInput
/** What people do to a run: approve, deny, edit, let stand, decide late, steer, queue, cancel, at any event. */
export const randomPeople: typeof arbitraries.randomPeople = loaded.randomPeople
/** Limits that a small run meets. */
export const randomLimits: typeof arbitraries.randomLimits = loaded.randomLimits
/** Clocks that start at any time, and stand still or advance at every reading. */
export const randomClock: typeof arbitraries.randomClock = loaded.randomClock
/** Where a process dies, or its machine loses power. */
export const randomCrash: typeof arbitraries.randomCrash = loaded.randomCrash
/** Ledgers in memory that fail at some of their appends, or lose the acknowledgement. */
export const randomLedger: typeof arbitraries.randomLedger = loaded.randomLedger
