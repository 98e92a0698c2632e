import type { CommandContext } from '../../command/command-context.ts'
import { withLedger } from '../../ledger/open-ledger.ts'

/** More than a person reads through. */
const maxRuns = 50

/** Prints what completes the argument RUN, one word a line: `latest`, and the newest runs. Reads no event of them. */
export function completeRuns({ print }: CommandContext, ledgerPath: string): Promise<void> {
  return withLedger(ledgerPath, 'read', async (ledger) => {
    await print('latest\n')
    for await (const { runId } of ledger.runs({ limit: maxRuns })) await print(`${runId}\n`)
  })
}
