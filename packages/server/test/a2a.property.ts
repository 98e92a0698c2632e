import * as fc from 'fast-check'
import { from } from 'rxjs'
import { describe, expect, it } from 'vitest'
import type { RuntimeEvent } from '@tallystick/core'
import { auditAll } from '@tallystick/core/machine'
import { playProgram } from '@tallystick/core/testing'
import { randomProgram } from '@tallystick/core/testing/random'
import { toA2a, type A2aUpdate } from '@tallystick/server'
import { newTask, tries } from '../../../scripts/testing/effort.ts'
import { shownTexts } from './kit/shown-texts.ts'

const numRuns = tries(100)

function updatesFor(events: readonly RuntimeEvent[]): readonly A2aUpdate[] {
  const found: A2aUpdate[] = []
  toA2a(from(events)).subscribe((update) => found.push(update))
  return found
}

/** The text that a client of A2A has at the end. */
function textOfTask(updates: readonly A2aUpdate[]): string {
  const texts = new Map<string, string>()
  for (const update of updates) {
    if (!('artifactUpdate' in update)) continue
    const { artifact, append } = update.artifactUpdate as {
      readonly artifact: { readonly artifactId: string; readonly parts: readonly { readonly text: string }[] }
      readonly append: boolean
    }
    const { artifactId, parts } = artifact
    texts.set(artifactId, (append ? (texts.get(artifactId) ?? '') : '') + (parts[0]?.text ?? ''))
  }
  return [...texts.values()].join('')
}

describe('a run for clients of A2A', () => {
  it('is a task that ends once, with the text that other protocols show', async () => {
    await fc.assert(
      fc
        .asyncProperty(randomProgram, fc.nat(), async (program, cut) => {
          const { events, others } = await playProgram(program)
          for (const run of [events, ...others]) {
            const updates = updatesFor(run)
            expect(textOfTask(updates)).toBe(shownTexts(run).join(''))
            const ends = updates.filter((each) =>
              /COMPLETED|REJECTED|CANCELED|FAILED/.test(JSON.stringify(each)),
            )
            expect(ends).toEqual(auditAll(run)?.phase === 'done' ? [updates.at(-1)] : [])
            const before = updatesFor(run.slice(0, cut % (run.length + 1)))
            expect(updates.slice(0, before.length)).toEqual(before)
          }
        })
        .beforeEach(newTask),
      { numRuns },
    )
  })
})
