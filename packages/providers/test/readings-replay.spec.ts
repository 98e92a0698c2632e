import { createRuntime, defineAgent, memoryLedger, type Limits, type RuntimeEvent } from '@tallystick/core'
import { type RetryPolicy } from '@tallystick/core/vocabulary'
import { manualClock, seededRandom, testTool } from '@tallystick/testkit'
import { replayRun } from '@tallystick/replay'
import { describe, expect, it } from 'vitest'
import { effort, newTask } from '../../../scripts/testing/effort.ts'
import { type Answer, serve } from './kit/loopback.ts'
import { answerOf, bytesOf, modelOver, readings } from './kit/readings.ts'
import type { Reading } from './kit/written/reading.ts'

interface Given {
  readonly subject?: string
  readonly limits?: Limits
  readonly retry?: Partial<RetryPolicy>
  /** How many connections end within the stream. */
  readonly breaksOff?: number
}

/** What a run may be given that its own events do not ask for. */
const programs: Readonly<Record<string, Given>> = {
  'with one attempt': { retry: { maxAttempts: 1 } },
  'about a subject, within limits that count tokens': {
    subject: 'customer-7',
    limits: { maxTotalTokens: 500_000, maxDurationMs: 600_000 },
  },
  'over connections that break off twice': { breaksOff: 2 },
}

/** Whether a run waits for its next attempt, and so for its clock alone. */
function waitsForAttempt(event: RuntimeEvent | undefined): boolean {
  return event?.type === 'model_stream_failed' && event.retryAt !== undefined
}

/** The answers to the requests of a run: the connection of the first ones ends after a quarter of the stream. */
function answersOf(reading: Reading, breaksOff: number): readonly Answer[] {
  const bytes = bytesOf(reading)
  const places = Array.from({ length: Math.floor(bytes.length / 211) }, (_, place) => (place + 1) * 211)
  const whole = answerOf(reading, places)
  const quarter = bytes.subarray(0, bytes.length / 4)
  const broken: Answer = { ...whole, status: 200, pieces: [quarter], ending: 'break' }
  return [...Array.from({ length: breaksOff }, () => broken), whole]
}

describe('a run of a stream that a person has read', () => {
  // A quick run gives each stream to one of the programs, a thorough one to all.
  const taken = (place: number) =>
    readings.filter((_, index) => effort({ quick: index % 3 === place, thorough: true }))

  describe.each(Object.entries(programs).map(([name, given], place) => [name, given, place] as const))(
    '%s',
    (_, { limits = {}, retry = {}, breaksOff = 0, ...options }, place) => {
      it.each(taken(place))('of $folder, $file, replays to itself', async (reading) => {
        const { url } = await serve(...answersOf(reading, breaksOff))
        const agent = defineAgent({
          ...{ name: 'recorded', instructions: 'Answer.', model: modelOver[reading.folder](url) },
          ...{ tools: [testTool({ name: 'get_weather' })], limits: { maxTurns: 3, ...limits }, retry },
        })
        const [clock, ledger] = [manualClock(), memoryLedger()]
        const host = { clock, random: seededRandom(1), report: () => {} }
        const run = createRuntime({ ledger, agents: [agent], host }).run(agent, 'Go.', options)
        const events: RuntimeEvent[] = []
        let next = Promise.withResolvers<void>()
        run.events$.subscribe((event) => {
          events.push(event)
          next.resolve()
          next = Promise.withResolvers()
        })
        const ended = run.result.then(() => true)
        for (let isDone = false; !isDone;) {
          // All but the wait for the next attempt comes over the network.
          if (waitsForAttempt(events.at(-1))) {
            // The adapter may have a timer of its own under way.
            const seen = events.length
            do {
              await newTask()
              clock.advanceToNext()
            } while (events.length === seen)
          }
          isDone = await Promise.race([next.promise.then(() => false), ended])
        }
        const { runId, status } = await run.result
        expect(status).toBe('done')
        const failures = events.filter(({ type }) => type === 'model_stream_failed')
        const retried = failures.filter(waitsForAttempt).length
        expect(retried).toBeGreaterThanOrEqual(breaksOff)
        expect(retried).toBeLessThanOrEqual(retry.maxAttempts === 1 ? 0 : Infinity)
        expect(await replayRun(ledger, runId, () => agent)).toEqual({ runId, events: events.length })
      })
    },
  )
})
