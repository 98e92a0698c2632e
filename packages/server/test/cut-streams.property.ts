import type { RuntimeEvent } from '@tallystick/core'
import { toAgUi, toOpenAiChat, toOpenAiResponse, toUiMessages } from '@tallystick/server'
import * as fc from 'fast-check'
import { from, type Observable } from 'rxjs'
import { expect, it } from 'vitest'
import { newTask, tries } from '../../../scripts/testing/effort.ts'
import { playProgram } from '../../../scripts/testing/programs/play-program.ts'
import { randomProgram } from '../../../scripts/testing/programs/random-program.ts'

type Mapping = (events$: Observable<RuntimeEvent>) => Observable<object>

it.each<[string, Mapping]>([
  ['AG-UI', toAgUi],
  ['OpenAI’s chat', toOpenAiChat],
  ['OpenAI’s responses', toOpenAiResponse],
  ['the AI SDK', toUiMessages],
])('a run for clients of %s is the same stream, wherever a reader is cut off', async (_, mapping) => {
  const outsFor = (events: readonly RuntimeEvent[]): readonly object[] => {
    const found: object[] = []
    mapping(from(events)).subscribe((out) => found.push({ ...out }))
    return found
  }
  await fc.assert(
    fc
      .asyncProperty(randomProgram, fc.nat(), async (program, cut) => {
        const { events } = await playProgram(program)
        const before = outsFor(events.slice(0, cut % (events.length + 1)))
        expect(outsFor(events).slice(0, before.length)).toEqual(before)
      })
      .beforeEach(newTask),
    { numRuns: tries(200) },
  )
})
