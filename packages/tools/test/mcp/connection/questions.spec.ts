// What a question of a server to the user does to the calls that run meanwhile.
import { manualClock } from '@tallystick/testkit'
import type { Json } from '@tallystick/core/vocabulary'
import { expect, it } from 'vitest'
import { connectFaulty, said, tick } from '../connected.ts'

it('given a question while another call runs, when the user has answered, then the time of that call runs again', async () => {
  const clock = manualClock()
  const elicit = () => ({ action: 'decline' }) as const
  const manager = await connectFaulty({ timeoutMs: 1_000 }, { timers: clock, elicit })
  const received: Json[] = []
  const call = manager.call('bad', 'hang', {}, { onProgress: (data) => void received.push(data) })
  call.catch(() => {})
  while (received.length === 0) await tick()
  expect(JSON.parse(await said(manager, 'ask'))).toEqual({ action: 'decline' })
  clock.advance(1_000)
  await expect(call).rejects.toMatchObject({ outcome: 'timed_out' })
})
