import type { PendingApproval, RunId, RunResult } from '@tallystick/core'
import type { DeferredCall } from '@tallystick/core/internal'
import { childRunIdOf, type EventOf } from '@tallystick/core/vocabulary'
import { commandLine, shownLedger } from './context.ts'
import { oneLine } from './text.ts'

const maxInputCharacters = 400

/** Where a ledger is, and how the user calls the program that looks into it. */
export interface Place {
  readonly programName: string
  readonly ledgerPath: string
  /** Options that the command which continues a run needs as well. */
  readonly resumeArguments?: readonly string[]
}

/** A limit that a run has met, and is suspended at until a caller raises it. */
export type MetLimit = Pick<EventOf<'limit_reached'>, 'limit' | 'max'>

/** A run that was driven to its rest. */
export interface StoppedRun {
  readonly result: RunResult
  readonly metLimit?: MetLimit
}

/** The commands that look at a run which is done. */
export function afterwards(runId: RunId, { programName, ledgerPath }: Place): string {
  const lines = [['list'], ['show', runId], ['verify'], ['replay', runId], ['export', '--run', runId]].map(
    ([verb = '', ...words]) => `  ${commandLine(programName, verb, ledgerPath, ...words)}\n`,
  )
  return `The ledger is ${shownLedger(ledgerPath)}. Look at it with:\n${lines.join('')}`
}

/** What a run that is not done waits for, and the commands that carry it on, to paste into a shell. */
export function continuation({ result, metLimit }: StoppedRun, place: Place): string {
  const { runId, pendingApprovals, deferredCalls } = result
  const { programName, ledgerPath, resumeArguments = [] } = place
  const resume = `  ${commandLine(programName, 'resume', ledgerPath, runId, ...resumeArguments)}\n`
  const waiting = [
    ...pendingApprovals.map((approval) => decisionText(approval, result, place)),
    ...deferredCalls.flatMap((call) => settlingText(call, result, place)),
  ]
  if (waiting.length === 0 && metLimit) waiting.push(raisingText(metLimit, runId, place))
  if (waiting.length === 0) return `The run rests here. This continues it:\n${resume}`
  return `${waiting.join('')}Then this continues it:\n${resume}`
}

function raisingText({ limit, max }: MetLimit, runId: RunId, { programName, ledgerPath }: Place): string {
  const raise = commandLine(programName, 'raise', ledgerPath, runId, limit, `${max * 2}`, '--by', 'you')
  return `The run is suspended at its limit ${limit} of ${max}, until a command raises it:\n  ${raise}\n`
}

function decisionText(
  { name, toolCallId, input, runId }: PendingApproval,
  result: RunResult,
  { programName, ledgerPath }: Place,
): string {
  const call = [ledgerPath, runId, toolCallId, '--by', 'you']
  const shown = oneLine(JSON.stringify(input), maxInputCharacters)
  return (
    `The run is suspended until a person decides about ${name} ${shown}${whose(runId, result)}:\n` +
    `  ${commandLine(programName, 'approve', ...call)}\n` +
    `  ${commandLine(programName, 'deny', ...call, '--reason', 'too many')}\n`
  )
}

/**
 * Returns the command that settles a deferred call. For the call of a child run the list is empty: only the end of the
 * child settles that call.
 */
function settlingText(
  { name, toolCallId, externalId, runId }: DeferredCall,
  result: RunResult,
  { programName, ledgerPath }: Place,
): string[] {
  if (externalId === childRunIdOf(runId, toolCallId)) return []
  const settle = commandLine(
    programName,
    'settle',
    ledgerPath,
    runId,
    toolCallId,
    '--result',
    'what it came to',
  )
  return [
    `The run is suspended until ${name}, which continues outside as ${externalId}, has come to an end${whose(runId, result)}:\n` +
      `  ${settle}\n`,
  ]
}

function whose(runId: RunId, result: RunResult): string {
  return runId === result.runId ? '' : `, which run ${runId} asks for`
}
