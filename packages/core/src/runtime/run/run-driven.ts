import { defaultHost, type HostProcess } from '../../values/host.ts'
import type { Ledger } from '../../ledger/ledger.ts'
import type { RunId } from '../../values/ids.ts'

/**
 * Whether a process drives a run now: somebody has its lease, and that one is not known to have died on this machine. A run that
 * has not ended, waits for nothing and is not driven was interrupted.
 */
export async function isRunDriven(
  ledger: Pick<Ledger, 'lease'>,
  runId: RunId,
  process: HostProcess | undefined = defaultHost.process,
): Promise<boolean> {
  const lease = await ledger.lease(runId)
  return lease !== undefined && process?.hasEnded(lease.holder) !== true
}
