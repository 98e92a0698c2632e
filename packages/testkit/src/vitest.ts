import { expect } from 'vitest'
import { runMatchers, type RunMatchers } from './matchers/run-matchers.ts'

// The matchers of runs in vitest's `expect`, by an import of this entry: import '@tallystick/testkit/vitest'

expect.extend(runMatchers)

declare module 'vitest' {
  interface Matchers<R extends void | Promise<void>, T> extends RunMatchers {}
}
