import type { Arbitrary } from 'fast-check'
import { ConfigurationError } from '@tallystick/core'
import type { Program } from './simulation/plan.ts'

// Random programs, whose generators need fast-check: an import without it says what to install.

// A static import would fail before any line of this file runs.
const programs = await import('./simulation/random-program.ts').catch((error: unknown) => {
  throw new ConfigurationError(
    '@tallystick/testkit/random needs the package fast-check, which is not installed or could not be loaded. Add it: npm install --save-dev fast-check.',
    { cause: error },
  )
})

/**
 * Any program: every kind of trouble, in any order; `playProgram` plays it. Needs fast-check: `npm install --save-dev
 * fast-check`.
 */
export const randomProgram: Arbitrary<Program> = programs.randomProgram

/** Programs that mostly call tools with retries, which mostly fail at first, among cancels, limits and crashes. */
export const retryingProgram: Arbitrary<Program> = programs.retryingProgram
