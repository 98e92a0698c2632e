import { memoryLedger } from '@tallystick/core'
import { expect, it } from 'vitest'
import { checkContract, type PromiseVerdict } from '../src/contract.ts'

async function whysOf(reason: unknown): Promise<readonly (PromiseVerdict['why'] | undefined)[]> {
  const store = { open: () => ({ ...memoryLedger(), append: () => Promise.reject(reason) }) }
  const verdicts = await Array.fromAsync(
    checkContract(() => store, { only: 'the first append makes the run and answers' }),
  )
  return verdicts.map(({ why }) => why)
}

it('shows what a store rejects with that is not an error, and the beginning of a long one', async () => {
  expect(await whysOf({ status: 507, body: { reason: 'no space left' } })).toEqual([
    '{"body":{"reason":"no space left"},"status":507}',
  ])
  expect(await whysOf(new RangeError('a'.repeat(5_000)))).toEqual([`RangeError: ${'a'.repeat(1_988)} …`])
})
