import { LedgerDamagedError, type RunId } from '@tallystick/core'
import type { InboxEntry } from '@tallystick/core/vocabulary'
import { withLimitNames } from '../versions/limit-names.ts'

/** Returns the command in the bytes of an inbox row. Throws `LedgerDamagedError` if the bytes are no command. */
export function commandOf(runId: RunId, key: string, body: Uint8Array): InboxEntry['command'] {
  try {
    const command = JSON.parse(
      Buffer.from(body.buffer, body.byteOffset, body.byteLength).toString(),
    ) as InboxEntry['command']
    // A command is stored without a version: only a raised limit names one.
    if (command.type !== 'raise_limit') return command
    return withLimitNames(command) as typeof command
  } catch (cause) {
    throw new LedgerDamagedError(
      `The inbox of run ${runId} is damaged: the command under ${key} cannot be read. Run verify on the ledger, and ` +
        'restore a copy.',
      { cause },
    )
  }
}
