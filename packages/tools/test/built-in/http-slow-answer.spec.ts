import { createRequire } from 'node:module'
import { httpFetch } from '@tallystick/tools/http-fetch'
import { expect, it } from 'vitest'
import { endingOf } from '../one-call.ts'
import { HeldTimers } from './held-timers.ts'
import { loopbackServer } from './loopback-server.ts'

/** The clock that the HTTP client has of its own: fake timers would only reach it where no other file has used it before. */
const clientClock = createRequire(import.meta.url)('undici/lib/util/timers.js') as {
  tick(milliseconds: number): void
}

/** Lets ten minutes pass for the HTTP client: more than it waits by default. */
function passTenMinutes(): void {
  // A timer that was set since the last tick begins with this one.
  clientClock.tick(0)
  clientClock.tick(600_000)
}

/** Lets this process read what it has sent to itself. */
async function partsRead(): Promise<void> {
  for (let turn = 0; turn < 50; turn++) await new Promise((resolve) => setImmediate(resolve))
}

it('an answer is waited for however long its parts take, up to the limit of the call', async () => {
  const server = await loopbackServer((_request, response) => {
    passTenMinutes()
    response.write('first')
    void partsRead().then(() => {
      passTenMinutes()
      response.end(', then')
    })
  })
  const tool = httpFetch({ allow: [server.place], timers: new HeldTimers() })
  const { outcome, text } = await endingOf(tool, { url: server.origin })
  expect([outcome, text]).toEqual(['success', expect.stringContaining('"body":"first, then"')])
  await server.close()
})
