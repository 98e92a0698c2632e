import { commandLine } from '../../command/command-context.ts'
import type { RunRow } from '../../runs/run-row.ts'
import type { Place } from '../text/next-commands.ts'

/** Returns the first command that continues a run, to paste into a shell; `undefined` if none is needed. */
export function nextCommand(run: RunRow, { programName, ledgerPath }: Place): string | undefined {
  const args = nextArguments(run)
  if (args === undefined) return undefined
  const [verb, ...rest] = args
  return commandLine(programName, verb, ledgerPath, ...rest)
}

type CommandArguments = readonly [verb: string, ...args: string[]]

function nextArguments({ summary, statusView, waits }: RunRow): CommandArguments | undefined {
  const { runId } = summary
  if (statusView.status === 'interrupted') return ['resume', runId]
  if (statusView.status !== 'suspended') return undefined
  const [[approval], [deferred]] = [waits.approvals, waits.deferred]
  if (approval) return ['approve', approval.runId, approval.toolCallId, '--by', 'you']
  if (deferred) return ['settle', deferred.runId, deferred.toolCallId, '--result', 'what it came to']
  const { limit } = summary.waits
  if (waits.children.length > 0 || limit?.max === undefined) return ['resume', runId]
  return ['raise', runId, limit.limit, `${limit.max * 2 || 1}`, '--by', 'you']
}
