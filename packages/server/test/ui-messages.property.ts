import { readUIMessageStream, uiMessageChunkSchema, type UIMessage, type UIMessageChunk } from 'ai'
import * as fc from 'fast-check'
import { from } from 'rxjs'
import { describe, expect, it } from 'vitest'
import { memoryLedger, type RuntimeEvent } from '@tallystick/core'
import { auditAll } from '@tallystick/core/machine'
import { toUiMessages, type UiMessageChunk } from '@tallystick/server'
import { UiMessages, uiMessageTable } from '../src/ai-sdk/map.ts'
import { mapMove, RunMoves } from '../src/stream/run-moves.ts'
import { RunReader } from '../src/stream/protocol.ts'
import { newTask, tries } from '../../../scripts/testing/effort.ts'
import { splitStreams } from './kit/split-streams.ts'
import { playProgram } from '../../../scripts/testing/programs/play-program.ts'
import { randomProgram } from '../../../scripts/testing/programs/random-program.ts'

const numRuns = tries(200)

function chunksOf(events: readonly RuntimeEvent[]): readonly UiMessageChunk[] {
  const chunks: UiMessageChunk[] = []
  toUiMessages(from(events)).subscribe((chunk) => chunks.push(chunk))
  return chunks
}

/** The message as the reader of the AI SDK puts it together, after what it has of it already; a fault of the stream fails. */
async function readBy(
  chunks: readonly UiMessageChunk[],
  message?: UIMessage,
): Promise<UIMessage | undefined> {
  const schema = uiMessageChunkSchema()
  for (const chunk of chunks) expect(await schema.validate!(chunk)).toMatchObject({ success: true })
  const given = chunks.filter(
    ({ type }) => type !== 'error' && type !== 'abort',
  ) as unknown as UIMessageChunk[]
  const stream = ReadableStream.from<UIMessageChunk>(given)
  let last = message
  const read = readUIMessageStream({ stream, terminateOnError: true, ...(message && { message }) })
  for await (const next of read) last = next
  return last
}

/**
 * What a person sees of a message: a part that two streams brought is one text. Where a step begins is left out, since the
 * reader has that only with the first part of the step.
 */
function shownBy(message: UIMessage | undefined): readonly unknown[] {
  return (message?.parts ?? []).reduce<{ readonly type: string; readonly text?: string }[]>((shown, part) => {
    if (part.type === 'step-start') return shown
    const last = shown.at(-1)
    if (part.type !== 'text' && part.type !== 'reasoning') return [...shown, part]
    const { type, text } = part
    if (last?.type !== type) return [...shown, { type, text }]
    return [...shown.slice(0, -1), { type, text: `${last.text}${text}` }]
  }, [])
}

/** The text of the last step that has a part: the last reply may hold reasoning alone. */
function lastText(message: UIMessage | undefined): string {
  const steps = (message?.parts ?? []).reduce<UIMessage['parts'][]>((found, part) => {
    if (part.type === 'step-start') return [...found, []]
    return [...found.slice(0, -1), [...(found.at(-1) ?? []), part]]
  }, [])
  const last = steps.findLast((parts) => parts.length > 0) ?? []
  return last.map((part) => (part.type === 'text' ? part.text : '')).join('')
}

/** The events of a run up to the first that belongs to the answer to a later message. */
function firstAnswerOf(run: readonly RuntimeEvent[]): readonly RuntimeEvent[] {
  const moves = new RunMoves()
  const end = run.findIndex((event) => {
    moves.next(event)
    return moves.answer > 1
  })
  return end < 0 ? run : run.slice(0, end)
}

/** What the stream of one answer of a run sends. */
function answerChunks(run: readonly RuntimeEvent[], answer: number): readonly UiMessageChunk[] {
  const place = answer === 1 ? { after: 0 } : { answer }
  const reader = new RunReader(memoryLedger(), place, uiMessageTable)
  return run.flatMap((event) => (reader.isOver ? [] : reader.read(event)))
}

/** The parts of a message as a page shows them. What has come of an input that never became whole is gone with its stream. */
function shownParts(message: { readonly parts: readonly object[] } | undefined): unknown {
  const parts = (message?.parts ?? []).map((part) =>
    'state' in part && part.state === 'input-streaming'
      ? { ...part, input: undefined, rawInput: undefined }
      : part,
  )
  return JSON.parse(JSON.stringify(parts))
}

describe('a run as a message of the AI SDK', () => {
  it('is taken by its reader at every event, and shows the answer', async () => {
    await fc.assert(
      fc
        .asyncProperty(randomProgram, fc.nat(), async (program, cut) => {
          const { events, others } = await playProgram(program)
          for (const run of [events, ...others]) {
            const message = await readBy(chunksOf(run))
            const state = auditAll(run)
            const isAnswered = state?.phase === 'done' && state.reason === 'answered'
            expect(isAnswered ? lastText(message) : '').toBe(isAnswered ? state.lastText : '')
            await readBy(chunksOf(run.slice(0, cut % (run.length + 1))))
          }
        })
        .beforeEach(newTask),
      { numRuns },
    )
  })

  it('is the same message, wherever one stream of it ends, and another one continues it', async () => {
    await fc.assert(
      fc
        .asyncProperty(randomProgram, fc.nat(), async (program, cut) => {
          const { events, others } = await playProgram(program)
          for (const run of [events, ...others].map(firstAnswerOf)) {
            const [before, after] = splitStreams(() => uiMessageTable, run, 1 + (cut % (run.length - 1)))
            const both = await readBy(after, structuredClone(await readBy(before)))
            const [all] = splitStreams(() => uiMessageTable, run, run.length)
            expect(shownBy(both)).toEqual(shownBy(await readBy(all)))
          }
        })
        .beforeEach(newTask),
      { numRuns },
    )
  })

  it('is in a page that is loaded anew what its streams have shown, an answer a message', async () => {
    await fc.assert(
      fc
        .asyncProperty(randomProgram, async (program) => {
          const { events, others } = await playProgram(program)
          for (const run of [events, ...others]) {
            const [moves, writer] = [new RunMoves(), new UiMessages()]
            for (const event of run) for (const move of moves.next(event)) mapMove(writer.table, move)
            const answers = writer.messages.filter(({ role }) => role === 'assistant')
            for (let answer = 1; answer <= moves.answer; answer++) {
              const streamed = await readBy(answerChunks(run, answer))
              const kept = answers.find(({ id }) => id === streamed?.id)
              expect(shownParts(kept)).toEqual(shownParts(streamed))
            }
          }
        })
        .beforeEach(newTask),
      { numRuns },
    )
  })
})
