import type { PendingApproval, RunId, RunResult } from '@tallystick/core'
import type { DeferredCall } from '@tallystick/core/internal'
import { deriveChildRunId, type EventOf } from '@tallystick/core/vocabulary'
import { formatCommand, hidePassword } from './context.ts'
import { toOneLine } from './text.ts'

const maxInputCharacters = 400

/** The ledger of a command, and the user's name for this program. */
export interface Place {
  readonly programName: string
  readonly ledgerPath: string
  /** Options that the command that continues a run also needs. */
  readonly resumeArguments?: readonly string[]
}

/** A limit that a run is suspended at until a caller raises it. */
export type MetLimit = Pick<EventOf<'limit_reached'>, 'limit' | 'max'>

export interface StoppedRun {
  readonly result: RunResult
  readonly metLimit?: MetLimit
}

/** The commands that look at a run that is done. */
export function formatAfterwards(runId: RunId, { programName, ledgerPath }: Place): string {
  const lines = [['list'], ['show', runId], ['verify'], ['replay', runId], ['export', '--run', runId]].map(
    ([verb = '', ...words]) => `  ${formatCommand(programName, verb, ledgerPath, ...words)}\n`,
  )
  return `The ledger is ${hidePassword(ledgerPath)}. Look at it with:\n${lines.join('')}`
}

/** Names what an unfinished run waits for, and the commands that continue it, to paste into a shell. */
export function formatContinuation({ result, metLimit }: StoppedRun, place: Place): string {
  const { runId, pendingApprovals, deferredCalls } = result
  const { programName, ledgerPath, resumeArguments = [] } = place
  const resume = `  ${formatCommand(programName, 'resume', ledgerPath, runId, ...resumeArguments)}\n`
  const waiting = [
    ...pendingApprovals.map((approval) => formatDecision(approval, result, place)),
    ...deferredCalls.flatMap((call) => formatSettling(call, result, place)),
  ]
  if (waiting.length === 0 && metLimit) {
    const { limit, max } = metLimit
    const raise = formatCommand(programName, 'raise', ledgerPath, runId, limit, `${max * 2}`, '--by', 'you')
    waiting.push(
      `The run is suspended at its limit ${limit} of ${max}, until a command raises it:\n  ${raise}\n`,
    )
  }
  if (waiting.length === 0) return `The run rests here. This continues it:\n${resume}`
  return `${waiting.join('')}Then this continues it:\n${resume}`
}

function formatDecision(
  { name, toolCallId, input, runId }: PendingApproval,
  result: RunResult,
  { programName, ledgerPath }: Place,
): string {
  const call = [ledgerPath, runId, toolCallId, '--by', 'you']
  const shown = toOneLine(JSON.stringify(input), maxInputCharacters)
  return (
    `The run is suspended until a person decides about ${name} ${shown}${formatOwner(runId, result)}:\n` +
    `  ${formatCommand(programName, 'approve', ...call)}\n` +
    `  ${formatCommand(programName, 'deny', ...call, '--reason', 'too many')}\n`
  )
}

/** The command that settles a deferred call; none for the call of a child run, which only the child's end settles. */
function formatSettling(
  { name, toolCallId, externalId, runId }: DeferredCall,
  result: RunResult,
  { programName, ledgerPath }: Place,
): string[] {
  if (externalId === deriveChildRunId(runId, toolCallId)) return []
  const words = [ledgerPath, runId, toolCallId, '--result', 'what it came to']
  const settle = formatCommand(programName, 'settle', ...words)
  return [
    `The run is suspended until ${name}, which continues outside as ${externalId}, has come to an end${formatOwner(runId, result)}:\n` +
      `  ${settle}\n`,
  ]
}

function formatOwner(runId: RunId, result: RunResult): string {
  return runId === result.runId ? '' : `, which run ${runId} asks for`
}
