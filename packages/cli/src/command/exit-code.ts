import { type RunResult, TallystickError } from '@tallystick/core'
import type { FinishReason } from '@tallystick/core/vocabulary'

/** Exit codes of the command. A shell reports `interrupted` for a program that Ctrl-C ended. */
export const exitCodes = {
  ok: 0,
  failed: 1,
  usage: 2,
  diverged: 3,
  damaged: 4,
  notFound: 5,
  interrupted: 130,
} as const
export type ExitCode = (typeof exitCodes)[keyof typeof exitCodes]

export type CommandErrorKind = 'usage' | 'not_found' | 'refused'

const byKind: Readonly<Record<CommandErrorKind, ExitCode>> = {
  usage: exitCodes.usage,
  not_found: exitCodes.notFound,
  refused: exitCodes.failed,
}

/** The command cannot do what it was asked. Codes `usage`, `not_found`, `refused`; the message names what to do next. */
export class CommandError extends TallystickError {
  readonly exitCode: ExitCode
  constructor(kind: CommandErrorKind, message: string, options?: { readonly cause?: unknown }) {
    super(kind, message, options)
    this.exitCode = byKind[kind]
  }
}

const byErrorCode: Readonly<Record<string, ExitCode>> = {
  configuration: exitCodes.usage,
  run_not_found: exitCodes.notFound,
  ledger_damaged: exitCodes.damaged,
  law_broken: exitCodes.damaged,
  illegal_transition: exitCodes.damaged,
}

/** The exit code that goes with an error. */
export function chooseExitCode(error: unknown): ExitCode {
  if (error instanceof CommandError) return error.exitCode
  return (error instanceof TallystickError ? byErrorCode[error.code] : undefined) ?? exitCodes.failed
}

/** Reasons of a run that ended as wanted, or that a caller stopped. */
const wanted: ReadonlySet<FinishReason> = new Set(['answered', 'handed_back', 'stopped', 'cancelled'])

/** Returns the exit code for a run that has stopped: 0 if it waits, or ended as wanted; else 1. */
export function toExitCode({ status, reason }: RunResult): ExitCode {
  return status === 'suspended' || reason === undefined || wanted.has(reason)
    ? exitCodes.ok
    : exitCodes.failed
}
