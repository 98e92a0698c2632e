import { createRuntime, defineAgent, memoryLedger } from '@tallystick/core'
import { checkLaws, manualClock, seededRandom, testTool } from '@tallystick/testkit'
import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { tries } from '../../../scripts/testing/effort.ts'
import { findUnclearWords, mutatedBytes } from '../../../scripts/testing/mutated.ts'
import { splitAt } from './kit/bytes.ts'
import { serve } from './kit/loopback.ts'
import { answerOf, bytesOf, modelOver, readingsIn } from './kit/readings.ts'
import type { Folder } from './kit/written/reading.ts'

const folders: readonly Folder[] = ['anthropic', 'openai-responses', 'openai-chat', 'ollama']

describe.each(folders)('a stream of %s in which something is wrong', (folder) => {
  const readings = readingsIn(folder)
  const bytes = mutatedBytes(readings.map(bytesOf))
  const [{ headers } = {}] = readings.map((reading) => answerOf(reading))
  const status = fc.constantFrom(200, 200, 200, 200, 200, 200, 204, 400, 429, 500, 529)
  const retryAfter = fc.constantFrom(undefined, '1', '-1', '1e9', 'soon', 'Wed, 21 Oct 2015 07:28:00 GMT', '')

  it('gives a run that ends, by the laws, and whose failures say what happened', async () => {
    await fc.assert(
      fc.asyncProperty(
        bytes,
        status,
        retryAfter,
        fc.array(fc.nat(4_000), { maxLength: 3 }),
        async (body, code, wait, places) => {
          const answer = {
            status: code,
            headers: { ...headers, ...(wait !== undefined && { 'retry-after': wait }) },
            ...(code !== 204 && { pieces: splitAt(body, places) }),
          }
          const { url } = await serve(answer)
          const reports: unknown[] = []
          const agent = defineAgent({
            ...{ name: 'fuzzed', instructions: 'Answer.', model: modelOver[folder](url) },
            ...{
              tools: [testTool({ name: 'get_weather' })],
              limits: { maxTurns: 2 },
              retry: { maxAttempts: 1 },
            },
          })
          const ledger = memoryLedger()
          const host = {
            ...{ clock: manualClock(), random: seededRandom(1) },
            report: (error: unknown) => void reports.push(error),
          }
          const run = createRuntime({ ledger, agents: [agent], host }).run(agent, 'Go.')
          expect(await run.result).toMatchObject({ status: 'done' })
          const events = await Array.fromAsync(ledger.read(run.id))
          expect(checkLaws(events)).toEqual([])
          expect(reports).toEqual([])
          const unclear = events.flatMap((event) => {
            const { failure } = event.type === 'model_stream_failed' ? event : {}
            return failure ? (findUnclearWords(failure.message) ?? []) : []
          })
          expect(unclear).toEqual([])
        },
      ),
      { numRuns: tries(1500) },
    )
  })
})
