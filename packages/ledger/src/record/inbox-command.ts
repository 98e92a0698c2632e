import { LedgerDamagedError, type InboxEntry, type RunId } from '@tallystick/core'

/** The command that an inbox row holds as bytes. Throws `LedgerDamagedError` where they are none. */
export function commandOf(runId: RunId, key: string, body: Uint8Array): InboxEntry['command'] {
  try {
    return JSON.parse(
      Buffer.from(body.buffer, body.byteOffset, body.byteLength).toString(),
    ) as InboxEntry['command']
  } catch (cause) {
    throw new LedgerDamagedError(
      `The inbox of run ${runId} is damaged: the command under ${key} cannot be read. Run verify on the ledger, and ` +
        'restore a copy.',
      { cause },
    )
  }
}
