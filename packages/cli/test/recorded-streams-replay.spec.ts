import { createRuntime, defineAgent, memoryLedger, type Limits, type Model } from '@tallystick/core'
import { manualClock, seededRandom, testTool } from '@tallystick/core/testing'
import { replayRun } from '@tallystick/ledger'
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

/** What a run may be given that its own events do not ask for. */
const programs: Readonly<Record<string, { readonly subject?: string; readonly limits?: Limits }>> = {
  'as it is': {},
  'about a subject, within limits that count tokens': {
    subject: 'customer-7',
    limits: { tokensMax: 500_000, durationMaxMs: 60_000 },
  },
}

// The recordings belong to their sources and are not in the repository; the title says when they are not there.
describe.skipIf(missing)(`a run of a recorded stream${missing ? ` (${missing})` : ''}`, () => {
  describe.each(Object.entries(programs))('%s', (_, { limits = {}, ...options }) => {
    it.each(streams)('of $provider, $file, replays to itself', async ({ provider, file }) => {
      const url = await serveStream({ provider, file })
      const agent = defineAgent({
        ...{ name: 'recorded', instructions: 'Answer.', model: adapters[provider]!(url) },
        tools: [testTool({ name: 'get_weather' })],
        // Another attempt would wait, and nothing moves this clock.
        ...{ limits: { turnsMax: 3, ...limits }, retry: { attemptsMax: 1 } },
      })
      const ledger = memoryLedger()
      const host = { clock: manualClock(), random: seededRandom(1), report: () => {} }
      const { runId, status } = await createRuntime({ ledger, agents: [agent], host }).run(
        agent,
        'Go.',
        options,
      ).result
      expect(status).toBe('done')
      const events = (await ledger.head(runId))!.seq
      expect(await replayRun(ledger, runId, () => agent)).toEqual({ runId, events })
    })
  })
})
