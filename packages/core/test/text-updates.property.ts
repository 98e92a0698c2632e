import * as fc from 'fast-check'
import { firstValueFrom, toArray } from 'rxjs'
import { expect, it } from 'vitest'
import { createRuntime, joinText } from '@tallystick/core'
import { readMessages } from '@tallystick/core/internal'
import { manualClock } from '@tallystick/testkit'
import { tries } from '../../../scripts/testing/effort.ts'
import { play, program } from './program.ts'
import { createIdleAgent } from '../../../scripts/testing/programs/play-program.ts'

const numRuns = tries(150)

it('a reader who takes back what was withdrawn has the final texts, and those are in the ledger', async () => {
  await fc.assert(
    fc.asyncProperty(program, fc.nat(), async (random, chosen) => {
      const { events, ledger, result, lastStates } = await play(random)
      const host = { clock: manualClock(events.at(-1)!.at), report: () => {} }
      const run = createRuntime({ ledger, agents: [createIdleAgent(random)], host }).resume(result.runId)
      let screen = ''
      const updates = await firstValueFrom(run.textUpdates$.pipe(toArray()))
      for (const { type, text } of updates) {
        expect(type === 'text' || screen.endsWith(text)).toBe(true)
        screen = type === 'text' ? screen + text : screen.slice(0, -text.length)
      }
      const texts = await firstValueFrom(run.text$.pipe(toArray()))
      expect(screen).toBe(texts.join(''))
      const said = new Set(
        lastStates
          .flatMap(({ history }) => readMessages(history))
          .flatMap((message) => (message.role === 'assistant' ? [joinText(message.parts)] : [])),
      )
      expect(texts.filter((text) => !said.has(text))).toEqual([])
      const after = chosen % (events.length + 1)
      const later = await firstValueFrom(run.after(after).textUpdates$.pipe(toArray()))
      expect(later).toEqual(updates.filter(({ seq }) => seq > after))
    }),
    { numRuns },
  )
})
