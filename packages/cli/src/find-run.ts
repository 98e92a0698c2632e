import type { Ledger, RunId } from '@tallystick/core'
import { commandLine } from './command-context.ts'
import type { Place } from './view/next-commands.ts'
import { CommandError } from './exit-code.ts'

const namedMax = 5

/**
 * Finds a run by its id, by an unambiguous beginning or end of it, or by `latest`. Throws a `CommandError`: `not_found`
 * when no run fits, `usage` when several do.
 */
export async function findRun(ledger: Ledger, given: string, options: Place): Promise<RunId> {
  const list = commandLine(options.programName, 'list', options.ledgerPath)
  const fitting: RunId[] = []
  for await (const { runId } of ledger.runs()) {
    if (given === 'latest' || runId === given) return runId
    if (given !== '' && (runId.startsWith(given) || runId.endsWith(given))) fitting.push(runId)
  }
  const [runId, ...others] = fitting
  if (runId === undefined) {
    throw new CommandError(
      'not_found',
      `No run of this ledger is called ${given}. See which there are: ${list}`,
    )
  }
  if (others.length > 0) {
    const named = fitting.slice(0, namedMax).join(', ') + (fitting.length > namedMax ? ', …' : '')
    throw new CommandError(
      'usage',
      `${given} fits ${fitting.length} runs (${named}). Give more of the id. See all: ${list}`,
    )
  }
  return runId
}
