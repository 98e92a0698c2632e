import { expect } from '@jest/globals'
import { runMatchers, type RunMatchers } from './matchers/run-matchers.ts'

// The matchers of runs in jest's `expect`, by an import of this entry: import '@tallystick/testkit/jest'

expect.extend(runMatchers)

declare module 'expect' {
  interface Matchers<R extends void | Promise<void>, T> extends RunMatchers {}
}
