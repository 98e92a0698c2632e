import type { Ledger } from '@tallystick/core'
import { sampleRunId } from '@tallystick/testkit'
import { expect, it } from 'vitest'
import { findCall } from '../src/runs/find-run.ts'

/** Finds a call among those that wait, without a look at the ledger. */
const found = async (given: string, ...ids: readonly string[]): Promise<string> => {
  const waiting = ids.map((toolCallId) => ({ toolCallId, runId: sampleRunId(1) }) as never)
  const search = { named: sampleRunId(1), waiting, awaited: 'an approval', show: 'show it' }
  const call: { readonly toolCallId: string } = await findCall(given, { ledger: {} as Ledger, ...search })
  return call.toolCallId
}

it('a call that waits is found by its whole id, also where that is an end of another one', async () => {
  expect(await found('call_1', 'other_call_1', 'call_1')).toBe('call_1')
})

it.each([
  ['', ['a'], 'Name the call by its id, or by an end of it. Waiting: a.'],
  ['', [], 'Name the call by its id, or by an end of it. Waiting: none.'],
  [
    'x',
    ['a', 'b'],
    `No call x of run ${sampleRunId(1)} or of its child runs waits for an approval. Waiting: a, b. See the run: show it`,
  ],
])('a call named %j is not found among %j', async (given, ids, message) => {
  await expect(found(given, ...ids)).rejects.toThrow(message)
})
