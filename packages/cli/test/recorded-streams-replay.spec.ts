import {
  createRuntime,
  defineAgent,
  memoryLedger,
  type Limits,
  type Model,
  type RetryPolicy,
  type RuntimeEvent,
} from '@tallystick/core'
import { manualClock, seededRandom, untilSettled, testTool } from '@tallystick/core/testing'
import { replayRun } from '@tallystick/replay'
import { anthropic } from '@tallystick/providers/anthropic'
import { ollama } from '@tallystick/providers/ollama'
import { openai, openaiChat } from '@tallystick/providers/openai'
import { describe, expect, it } from 'vitest'
import { missing, recordedStreams, serveStream } from './kit/recorded-streams.ts'

const chat = (baseURL: string): Model => openaiChat('gpt-test', { apiKey: 'k', baseURL })
const adapters: Readonly<Record<string, (baseURL: string) => Model>> = {
  anthropic: (baseURL) => anthropic('claude-test-1', { apiKey: 'k', baseURL }),
  ollama: (baseURL) => ollama('qwen3', { baseURL }),
  'openai-chat': chat,
  'openai-compatible': chat,
  'openai-responses': (baseURL) => openai('gpt-test', { apiKey: 'k', baseURL }),
}

const streams = recordedStreams(Object.keys(adapters))

interface Given {
  readonly subject?: string
  readonly limits?: Limits
  readonly retry?: Partial<RetryPolicy>
  /** How many connections end within the stream. */
  readonly breaksOff?: number
}

/** What a run may be given that its own events do not ask for. */
const programs: Readonly<Record<string, Given>> = {
  'with one attempt': { retry: { attemptsMax: 1 } },
  'about a subject, within limits that count tokens': {
    subject: 'customer-7',
    limits: { tokensMax: 500_000, durationMaxMs: 600_000 },
  },
  'over connections that break off twice': { breaksOff: 2 },
}

/** Whether a run waits for its next attempt, and so for its clock alone. */
function waitsForAttempt(event: RuntimeEvent | undefined): boolean {
  return event?.type === 'model_stream_failed' && event.retryAt !== undefined
}

// The recordings belong to their sources and are not in the repository; the title says when they are not there.
describe.skipIf(missing)(`a run of a recorded stream${missing ? ` (${missing})` : ''}`, () => {
  describe.each(Object.entries(programs))(
    '%s',
    (_, { limits = {}, retry = {}, breaksOff = 0, ...options }) => {
      it.each(streams)('of $provider, $file, replays to itself', async ({ provider, file }) => {
        const url = await serveStream({ provider, file }, breaksOff)
        const agent = defineAgent({
          ...{ name: 'recorded', instructions: 'Answer.', model: adapters[provider]!(url) },
          ...{ tools: [testTool({ name: 'get_weather' })], limits: { turnsMax: 3, ...limits }, retry },
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
        const underWay = () =>
          waitsForAttempt(events.at(-1)) ? undefined : Promise.race([next.promise, run.result])
        const { runId, status } = await untilSettled(clock, run.result, underWay)
        expect(status).toBe('done')
        const failures = events.filter(({ type }) => type === 'model_stream_failed')
        const retried = failures.filter(waitsForAttempt).length
        expect(retried).toBeGreaterThanOrEqual(breaksOff)
        expect(retried).toBeLessThanOrEqual(retry.attemptsMax === 1 ? 0 : Infinity)
        expect(await replayRun(ledger, runId, () => agent)).toEqual({ runId, events: events.length })
      })
    },
  )
})
