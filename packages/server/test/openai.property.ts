import * as fc from 'fast-check'
import { ChatCompletionStream } from 'openai/lib/ChatCompletionStream'
import { ResponseStream } from 'openai/lib/responses/ResponseStream'
import { from, type Observable } from 'rxjs'
import { describe, expect, it } from 'vitest'
import type { RuntimeEvent } from '@tallystick/core'
import { auditAll } from '@tallystick/core/machine'
import { toOpenAiChat, toOpenAiResponse } from '@tallystick/server'
import { createAnswerTable } from '../src/openai/chat.ts'
import { createResponseTable } from '../src/openai/responses.ts'
import { RunMoves, mapMove } from '../src/stream/run-moves.ts'
import { newTask, tries } from '../../../scripts/testing/effort.ts'
import { shownTexts } from './kit/shown-texts.ts'
import { splitStreams, waitingPlaces } from './kit/split-streams.ts'
import { playProgram } from '../../../scripts/testing/programs/play-program.ts'
import { randomProgram } from '../../../scripts/testing/programs/random-program.ts'

const numRuns = tries(100)

type Mapping = (events$: Observable<RuntimeEvent>) => Observable<object>

function outsFor(
  mapping: Mapping,
  events: readonly RuntimeEvent[],
): readonly Readonly<Record<string, unknown>>[] {
  const found: Readonly<Record<string, unknown>>[] = []
  mapping(from(events)).subscribe((out) => found.push({ ...out }))
  return found
}

/** A stream as the client's own judge reads it: JSON, one a line. */
function readable(outs: readonly object[]): ReadableStream {
  const encoder = new TextEncoder()
  return new Response(encoder.encode(outs.map((out) => `${JSON.stringify(out)}\n`).join('')))
    .body as ReadableStream
}

/** What a client that waits gets of a run that has ended. */
function wholeChat(events: readonly RuntimeEvent[]): unknown {
  const [moves, table] = [new RunMoves(), createAnswerTable()]
  const answers = events.flatMap((event) => moves.next(event)).flatMap((move) => mapMove(table, move))
  expect(answers).toHaveLength(1)
  const { choices } = answers[0]!.body as { choices?: readonly { message: { content: unknown } }[] }
  return choices?.[0]?.message.content
}

/** What a client that streams has of a run that has ended: its text, or the code of the error that comes last. */
async function streamedChat(events: readonly RuntimeEvent[]): Promise<{ text: string } | { code: string }> {
  const outs = outsFor(toOpenAiChat, events)
  const errors = outs.flatMap((out) => ('error' in out ? [out.error as { code: string }] : []))
  expect(errors).toEqual('error' in outs.at(-1)! ? [outs.at(-1)!['error']] : [])
  if (errors[0]) return { code: errors[0].code }
  const stream = ChatCompletionStream.fromReadableStream(readable(outs))
  return { text: (await stream.finalChatCompletion()).choices[0]?.message.content ?? '' }
}

describe('a run for clients of OpenAI', () => {
  it('is a response that the client takes, with the text that other protocols show', async () => {
    await fc.assert(
      fc
        .asyncProperty(randomProgram, async (program) => {
          const { events, others } = await playProgram(program)
          for (const run of [events, ...others]) {
            const outs = outsFor(toOpenAiResponse, run)
            expect(outs.map(({ sequence_number }) => sequence_number)).toEqual(outs.map((_, index) => index))
            const state = auditAll(run)
            if (state?.phase !== 'done') continue
            const response = await ResponseStream.fromReadableStream(readable(outs)).finalResponse()
            expect(response.output_text).toBe(shownTexts(run).join(''))
            expect(response.usage?.output_tokens).toBe(state.totals.usage.outputTokens ?? 0)
            expect(response.status === 'completed').toBe(
              ['answered', 'stopped', 'handed_back'].includes(state.reason),
            )
          }
        })
        .beforeEach(newTask),
      { numRuns },
    )
  })

  it('is a completion that the client takes, with that text, or an error that says why not', async () => {
    await fc.assert(
      fc
        .asyncProperty(randomProgram, async (program) => {
          const { events, others } = await playProgram(program)
          for (const run of [events, ...others]) {
            const state = auditAll(run)
            if (state?.phase !== 'done') continue
            const reported = shownTexts(run)
              .filter((text) => text !== '')
              .join('\n\n')
            const unanswered = ['cancelled', 'model_failed', 'output_invalid', 'context_overflow']
            const isAnswered = !unanswered.includes(state.reason)
            expect(wholeChat(run)).toBe(isAnswered ? reported || null : undefined)
            const streamed = await streamedChat(run)
            const wasWithdrawn = 'code' in streamed && streamed.code === 'text_withdrawn'
            const expected = isAnswered ? { text: reported } : { code: state.reason }
            expect(streamed).toEqual(wasWithdrawn ? streamed : expected)
          }
        })
        .beforeEach(newTask),
      { numRuns },
    )
  })

  it('tells the rest of its text in the response that continues one which waits', async () => {
    await fc.assert(
      fc
        .asyncProperty(randomProgram, async (program) => {
          const { events, others } = await playProgram(program)
          for (const run of [events, ...others]) {
            if (auditAll(run)?.phase !== 'done') continue
            for (const place of waitingPlaces(run)) {
              const texts: string[] = []
              for (const outs of splitStreams(() => createResponseTable({}), run, place)) {
                const response = await ResponseStream.fromReadableStream(readable(outs)).finalResponse()
                texts.push(response.output_text)
              }
              expect(texts.join('')).toBe(shownTexts(run).join(''))
            }
          }
        })
        .beforeEach(newTask),
      { numRuns },
    )
  })
})
