import type { RunId, RunResult } from '@tallystick/core'
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
export function continuation(
  { runId, pendingApprovals }: RunResult,
  { programName, ledgerPath }: Place,
): string {
  const resume = `  ${commandLine(programName, 'resume', ledgerPath, runId)}\n`
  if (pendingApprovals.length === 0) return `The run rests here. This continues it:\n${resume}`
  const waiting = pendingApprovals.map(({ name, toolCallId, input }) => {
    const call = [ledgerPath, runId, toolCallId, '--by', 'you']
    return (
      `The run is suspended until someone decides about ${name} ${oneLine(JSON.stringify(input), inputCharactersMax)}:\n` +
      `  ${commandLine(programName, 'approve', ...call)}\n` +
      `  ${commandLine(programName, 'deny', ...call, '--reason', 'too many')}\n`
    )
  })
  return `${waiting.join('')}Then this continues it:\n${resume}`
}
