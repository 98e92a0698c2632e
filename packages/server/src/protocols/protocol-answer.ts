import { caughtUp, changesOf } from '@tallystick/core/kit'
import type { StreamHost } from '../stream/followed-stream.ts'
import type { FollowedLedger } from '../stream/shared-reads.ts'
import type { FollowedRun } from './protocol-stream.ts'
import type { MoveTable } from './run-moves.ts'
import { RunReader } from './run-reader.ts'

/**
 * Resolves with the last item that a protocol sends for a run, when the run ends or waits for a command; `undefined` if
 * the server stops before that.
 */
export async function protocolAnswer<Out>(
  { ledger, reads }: FollowedLedger,
  run: FollowedRun,
  table: MoveTable<Out>,
  { clock, heartbeatMs, stopping, signal }: StreamHost & { readonly signal: AbortSignal },
): Promise<Out | undefined> {
  const reader = new RunReader(ledger, run, table)
  const changes = changesOf(reads.forReader(), run.runId, { after: 0 })
  const end = (): void => void changes.return()
  // Asked again now and then: what the run waits for can be recorded by another one.
  const look = (): void => {
    changes.wake()
    stopTimer = clock.schedule(heartbeatMs, look)
  }
  let stopTimer = clock.schedule(heartbeatMs, look)
  stopping.addEventListener('abort', end)
  signal.addEventListener('abort', end)
  try {
    for await (const event of changes) {
      const outs = event === caughtUp ? await reader.endAtWait() : reader.read(event)
      if (event === caughtUp ? outs !== undefined : event.type === 'run_finished') return outs?.at(-1)
    }
    return undefined
  } finally {
    stopTimer()
    stopping.removeEventListener('abort', end)
    signal.removeEventListener('abort', end)
  }
}
