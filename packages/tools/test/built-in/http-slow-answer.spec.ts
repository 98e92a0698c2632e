// Alone in its file: the HTTP client keeps the first timer that it gets, and here that has to be one of the test.
import { httpFetch } from '@tallystick/tools/http-fetch'
import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { endingOf } from '../one-call.ts'
import { HeldTimers } from './held-timers.ts'
import { loopbackServer } from './loopback-server.ts'

beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] }))
afterEach(() => void vi.useRealTimers())

/** Lets this process read what it has sent to itself. */
async function partsRead(): Promise<void> {
  for (let turn = 0; turn < 50; turn++) await new Promise((resolve) => setImmediate(resolve))
}

it('an answer is waited for however long its parts take, up to the limit of the call', async () => {
  const server = await loopbackServer((_request, response) => {
    vi.advanceTimersByTime(600_000)
    response.write('first')
    void partsRead().then(() => {
      vi.advanceTimersByTime(600_000)
      response.end(', then')
    })
  })
  const tool = httpFetch({ allow: [server.place], timers: new HeldTimers() })
  const { outcome, text } = await endingOf(tool, { url: server.origin })
  expect([outcome, text]).toEqual(['success', expect.stringContaining('"body":"first, then"')])
  await server.close()
})
