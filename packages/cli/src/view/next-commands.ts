import type { DeferredCall, PendingApproval, RunId, RunResult } from '@tallystick/core'
import { childRunIdOf } from '@tallystick/core'
import { commandLine } from '../command-context.ts'
import { oneLine } from './content-text.ts'

const inputCharactersMax = 400

/** Where a ledger is, and how the user calls the program that looks into it. */
export interface Place {
  readonly programName: string
  readonly ledgerPath: string
}

/** The commands that look at a run which is done. */
export function afterwards(runId: RunId, { programName, ledgerPath }: Place): string {
  const lines = [['list'], ['show', runId], ['verify'], ['replay', runId], ['export', '--run', runId]].map(
    ([verb = '', ...words]) => `  ${commandLine(programName, verb, ledgerPath, ...words)}\n`,
  )
  return `The ledger is ${ledgerPath}. Look at it with:\n${lines.join('')}`
}

/** What a run that is not done waits for, and the commands that carry it on, to paste into a shell. */
export function continuation(result: RunResult, place: Place): string {
  const { runId, pendingApprovals, deferredCalls } = result
  const resume = `  ${commandLine(place.programName, 'resume', place.ledgerPath, runId)}\n`
  const waiting = [
    ...pendingApprovals.map((approval) => decisionText(approval, result, place)),
    ...deferredCalls.flatMap((call) => settlingText(call, result, place)),
  ]
  if (waiting.length === 0) return `The run rests here. This continues it:\n${resume}`
  return `${waiting.join('')}Then this continues it:\n${resume}`
}

function decisionText(
  { name, toolCallId, input, runId }: PendingApproval,
  result: RunResult,
  { programName, ledgerPath }: Place,
): string {
  const call = [ledgerPath, runId, toolCallId, '--by', 'you']
  const shown = oneLine(JSON.stringify(input), inputCharactersMax)
  return (
    `The run is suspended until someone decides about ${name} ${shown}${whose(runId, result)}:\n` +
    `  ${commandLine(programName, 'approve', ...call)}\n` +
    `  ${commandLine(programName, 'deny', ...call, '--reason', 'too many')}\n`
  )
}

/** A call whose work a child run does is settled by that run's end, and by nobody else. */
function settlingText(
  { name, toolCallId, receipt, runId }: DeferredCall,
  result: RunResult,
  { programName, ledgerPath }: Place,
): string[] {
  if (receipt === childRunIdOf(runId, toolCallId)) return []
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
    `The run is suspended until ${name}, which goes on outside as ${receipt}, has come to an end${whose(runId, result)}:\n` +
      `  ${settle}\n`,
  ]
}

function whose(runId: RunId, result: RunResult): string {
  return runId === result.runId ? '' : `, which run ${runId} asks for`
}
