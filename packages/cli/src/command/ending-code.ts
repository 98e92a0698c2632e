import type { FinishReason, RunResult } from '@tallystick/core'
import { exitCodes, type ExitCode } from './exit-code.ts'

/** Reasons of a run that came to what was wanted, or that somebody stopped. */
const wanted: ReadonlySet<FinishReason> = new Set(['answered', 'handed_back', 'stopped', 'cancelled'])

/** The exit code that says how a run came to rest: 0 where it waits, or ended as somebody wanted; else 1. */
export function endingCode({ status, reason }: RunResult): ExitCode {
  return status === 'suspended' || reason === undefined || wanted.has(reason)
    ? exitCodes.ok
    : exitCodes.failed
}
