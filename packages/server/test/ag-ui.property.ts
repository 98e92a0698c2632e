import { verifyEvents, type BaseEvent } from '@ag-ui/client'
import { EventSchemas } from '@ag-ui/core/schemas'
import * as fc from 'fast-check'
import { from, lastValueFrom, toArray, type Observable } from 'rxjs'
import { describe, expect, it } from 'vitest'
import type { RuntimeEvent } from '@tallystick/core'
import { auditAll } from '@tallystick/core/machine'
import { createAgUiTable } from '../src/ag-ui/map.ts'
import { toAgUi, toUiMessages, type AgUiEvent } from '@tallystick/server'
import { newTask, tries } from '../../../scripts/testing/effort.ts'
import { splitStreams } from './kit/split-streams.ts'
import { playProgram } from '../../../scripts/testing/programs/play-program.ts'
import { randomProgram } from '../../../scripts/testing/programs/random-program.ts'

const numRuns = tries(200)

function eventsFor(events: readonly RuntimeEvent[]): readonly AgUiEvent[] {
  const found: AgUiEvent[] = []
  toAgUi(from(events)).subscribe((event) => found.push(event))
  return found
}

/** Holds a stream to the schemas and to the judge of the protocol. */
async function judge(events: readonly AgUiEvent[]): Promise<void> {
  for (const event of events) EventSchemas.parse(event)
  // The client brings an RxJS of its own, whose types are others.
  const judged = verifyEvents(false)(from(events) as never) as unknown as Observable<BaseEvent>
  expect(await lastValueFrom(judged.pipe(toArray()))).toHaveLength(events.length)
}

/** The text that a client shows at the end, by the parts of the run. */
function shownText(events: readonly AgUiEvent[]): string {
  const texts = new Map<unknown, string>()
  for (const { type, messageId, delta, messages } of events) {
    if (type === 'TEXT_MESSAGE_START') texts.set(messageId, '')
    if (type === 'TEXT_MESSAGE_CONTENT') texts.set(messageId, (texts.get(messageId) ?? '') + String(delta))
    if (type !== 'MESSAGES_SNAPSHOT') continue
    const kept = new Set((messages as readonly { readonly id: string }[]).map(({ id }) => id))
    for (const id of texts.keys()) if (!kept.has(id as string)) texts.delete(id)
  }
  return [...texts.values()].join('')
}

/** The same of the AI SDK's stream. */
function shownByAiSdk(events: readonly RuntimeEvent[]): string {
  let [shown, step] = ['', '']
  toUiMessages(from(events)).subscribe(({ type, delta }) => {
    if (type === 'text-delta') step += String(delta)
    if (type === 'reset-step') step = ''
    if (type !== 'finish-step') return
    shown += step
    step = ''
  })
  return shown + step
}

describe('a run for clients of AG-UI', () => {
  it('is taken by the judge of the protocol, ends once, and shows the text that other protocols show', async () => {
    await fc.assert(
      fc
        .asyncProperty(randomProgram, fc.nat(), async (program, cut) => {
          const { events, others } = await playProgram(program)
          for (const run of [events, ...others]) {
            const shown = eventsFor(run)
            await judge(shown)
            expect(shown.filter(({ type }) => /RUN_(FINISHED|ERROR)/.test(type))).toEqual([shown.at(-1)])
            expect(shownText(shown)).toBe(shownByAiSdk(run))
            const state = auditAll(run)
            const isAnswered = state?.phase === 'done' && state.reason === 'answered'
            expect(shownText(shown).endsWith(isAnswered ? state.lastText : '')).toBe(true)
            await judge(eventsFor(run.slice(0, cut % (run.length + 1))))
          }
        })
        .beforeEach(newTask),
      { numRuns },
    )
  })

  it('is taken by the judge wherever one stream of it ends, and another one continues it', async () => {
    await fc.assert(
      fc
        .asyncProperty(randomProgram, fc.nat(), async (program, cut) => {
          const { events, others } = await playProgram(program)
          for (const run of [events, ...others]) {
            const [before, after] = splitStreams(() => createAgUiTable(), run, 1 + (cut % (run.length - 1)))
            await judge(before)
            await judge(after)
            expect(shownText([...before, ...after])).toBe(shownText(eventsFor(run)))
            expect(after[0]).toMatchObject({ type: 'RUN_STARTED' })
          }
        })
        .beforeEach(newTask),
      { numRuns },
    )
  })
})
