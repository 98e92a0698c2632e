import type { RunResult } from '@tallystick/core'
import type { FinishReason } from '@tallystick/core/vocabulary'
import { exitCodes, type ExitCode } from './exit-code.ts'

/** Reasons of a run that ended as wanted, or that a caller stopped. */
const wanted: ReadonlySet<FinishReason> = new Set(['answered', 'handed_back', 'stopped', 'cancelled'])

/** Returns the exit code for a run that has stopped: 0 if it waits, or ended as wanted; else 1. */
export function endingCode({ status, reason }: RunResult): ExitCode {
  return status === 'suspended' || reason === undefined || wanted.has(reason)
    ? exitCodes.ok
    : exitCodes.failed
}
