import { readUIMessageStream, uiMessageChunkSchema, type UIMessage, type UIMessageChunk } from 'ai'
import * as fc from 'fast-check'
import { from } from 'rxjs'
import { describe, expect, it } from 'vitest'
import type { RuntimeEvent } from '@tallystick/core'
import { auditAll } from '@tallystick/core/machine'
import { playProgram } from '@tallystick/core/testing'
import { randomProgram } from '@tallystick/core/testing/random'
import { toUiMessages, type UiMessageChunk } from '@tallystick/server'
import { newTask, tries } from '../../../scripts/testing/effort.ts'

const numRuns = tries(200)

function chunksOf(events: readonly RuntimeEvent[]): readonly UiMessageChunk[] {
  const chunks: UiMessageChunk[] = []
  toUiMessages(from(events)).subscribe((chunk) => chunks.push(chunk))
  return chunks
}

/** The message as the reader of the AI SDK puts it together; a fault of the stream fails. */
async function readBy(chunks: readonly UiMessageChunk[]): Promise<UIMessage | undefined> {
  const schema = uiMessageChunkSchema()
  for (const chunk of chunks) expect(await schema.validate!(chunk)).toMatchObject({ success: true })
  const given = chunks.filter(
    ({ type }) => type !== 'error' && type !== 'abort',
  ) as unknown as UIMessageChunk[]
  const stream = ReadableStream.from<UIMessageChunk>(given)
  let last: UIMessage | undefined
  for await (const message of readUIMessageStream({ stream, terminateOnError: true })) last = message
  return last
}

/** The text of the last step that has one. */
function lastText(message: UIMessage | undefined): string {
  const steps = (message?.parts ?? []).reduce<string[]>((texts, part) => {
    if (part.type === 'step-start') return [...texts, '']
    return part.type === 'text' ? [...texts.slice(0, -1), (texts.at(-1) ?? '') + part.text] : texts
  }, [])
  return steps.findLast((text) => text !== '') ?? ''
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

  it('is the same stream, wherever a reader is cut off', async () => {
    await fc.assert(
      fc
        .asyncProperty(randomProgram, fc.nat(), async (program, cut) => {
          const { events } = await playProgram(program)
          const place = cut % (events.length + 1)
          const [all, before] = [chunksOf(events), chunksOf(events.slice(0, place))]
          expect(all.slice(0, before.length)).toEqual(before)
        })
        .beforeEach(newTask),
      { numRuns },
    )
  })
})
