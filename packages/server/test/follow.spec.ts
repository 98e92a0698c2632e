import { NEVER } from 'rxjs'
import { describe, expect, it } from 'vitest'
import type { Ledger } from '@tallystick/core'
import { followAllChanges } from '@tallystick/core/store-kit'
import type { TailedEvent } from '@tallystick/core/vocabulary'
import { manualClock } from '@tallystick/testkit'
import { readChunks, streamChunks } from '../src/stream/follow.ts'

describe('a stream whose reader leaves', () => {
  it('reports that its ledger could not end the read', async () => {
    async function* tail(): AsyncGenerator<TailedEvent> {
      try {
        for (;;) yield { cursor: 'c' } as TailedEvent
      } finally {
        await Promise.reject(new Error('the cursor could not be closed'))
      }
    }
    const reported = Promise.withResolvers<unknown>()
    const host = {
      clock: manualClock(),
      heartbeatMs: 1_000,
      stopping: new AbortController().signal,
      report: (error: unknown, what: string) => reported.resolve([what, error]),
    }
    const changes = followAllChanges({ tail, changes: () => NEVER } as unknown as Ledger)
    const followed = { changes, format: () => 'x'.repeat(70_000), isLast: () => false }
    const reader = streamChunks((signal) => readChunks(followed, host, signal), host).getReader()
    await reader.read()
    await reader.cancel()
    expect(await reported.promise).toEqual(['A stream of events did not end', expect.any(Error)])
  })
})
