import { StreamResponse } from '@a2a-js/sdk'
import { AgentEvent, InMemoryTaskStore, ResultManager, ServerCallContext } from '@a2a-js/sdk/server'
import * as fc from 'fast-check'
import { from } from 'rxjs'
import { describe, expect, it } from 'vitest'
import type { RuntimeEvent } from '@tallystick/core'
import { auditAll } from '@tallystick/core/machine'
import { toA2a, type A2aUpdate } from '@tallystick/server'
import { newTask, tries } from '../../../scripts/testing/effort.ts'
import { TaskView } from '../src/a2a/map.ts'
import { shownTexts } from './kit/shown-texts.ts'
import { splitStreams } from './kit/split-streams.ts'
import { playProgram } from '../../../scripts/testing/programs/play-program.ts'
import { randomProgram } from '../../../scripts/testing/programs/random-program.ts'

const numRuns = tries(100)

function updatesFor(events: readonly RuntimeEvent[]): readonly A2aUpdate[] {
  const found: A2aUpdate[] = []
  toA2a(from(events)).subscribe((update) => found.push(update))
  return found
}

const context = new ServerCallContext()

/** The task as the SDK puts it together from its stream, and the texts of its artifacts. */
async function taskOf(
  updates: readonly A2aUpdate[],
): Promise<{ readonly text: string; readonly state: unknown }> {
  const manager = new ResultManager(new InMemoryTaskStore(), context)
  for (const update of updates) {
    const { payload } = StreamResponse.fromJSON(update)
    if (payload?.$case === 'task') await manager.processEvent(AgentEvent.task(payload.value))
    if (payload?.$case === 'statusUpdate') await manager.processEvent(AgentEvent.statusUpdate(payload.value))
    if (payload?.$case === 'artifactUpdate')
      await manager.processEvent(AgentEvent.artifactUpdate(payload.value))
  }
  const { artifacts = [], status } = manager.getCurrentTask() ?? {}
  const texts = artifacts.flatMap(({ parts }) => parts.map(({ content }) => content?.value))
  return { text: texts.join(''), state: status?.state }
}

describe('a run for clients of A2A', () => {
  it('is a task that ends once, with the text that other protocols show', async () => {
    await fc.assert(
      fc
        .asyncProperty(randomProgram, fc.nat(), async (program, cut) => {
          const { events, others } = await playProgram(program)
          for (const run of [events, ...others]) {
            const updates = updatesFor(run)
            expect((await taskOf(updates)).text).toBe(shownTexts(run).join(''))
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

  it('is the same task, wherever one stream of it ends, and another one continues it', async () => {
    await fc.assert(
      fc
        .asyncProperty(randomProgram, fc.nat(), async (program, cut) => {
          const { events, others } = await playProgram(program)
          for (const run of [events, ...others]) {
            const [before, after] = splitStreams(
              () => new TaskView().table,
              run,
              1 + (cut % (run.length - 1)),
            )
            const [all] = splitStreams(() => new TaskView().table, run, run.length)
            const task = await taskOf(all)
            expect(await taskOf([...before, ...after])).toEqual(task)
            // It begins with the task as it is, for a client that has nothing of it yet.
            expect(await taskOf(after)).toEqual(task)
          }
        })
        .beforeEach(newTask),
      { numRuns },
    )
  })
})
