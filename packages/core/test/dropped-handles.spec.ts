import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { describe, expect, it } from 'vitest'
import type { RuntimeEvent } from '@tallystick/core'
import { testTool } from '@tallystick/testkit'
import { stage, type Stage } from './stage.ts'

setFlagsFromString('--expose-gc')
const collectGarbage = runInNewContext('gc') as () => void

/** Lets the engine forget what has no holder. What was read in a turn of the event loop, it keeps until the next. */
async function forget(): Promise<void> {
  for (let round = 0; round < 5; round++) {
    await new Promise((resolve) => setImmediate(resolve))
    collectGarbage()
  }
}

function asking(): Stage {
  const pay = testTool({ name: 'pay', effect: 'write', check: () => ({ kind: 'ask' }) })
  return stage({ steps: [{ toolCalls: [{ name: 'pay', input: {} }] }, { text: 'Paid.' }], tools: [pay] })
}

/** Starts a run of which only a subscription is kept. */
async function subscribed(
  { start, waitUntilSettled: wait }: Stage,
  seen: RuntimeEvent[],
): Promise<{ runId: string; toolCallId: string; watched: WeakRef<object> }> {
  const run = start()
  run.events$.subscribe((event) => seen.push(event))
  const { pendingApprovals } = await wait(run.result)
  return { runId: run.id, toolCallId: pendingApprovals[0]!.toolCallId, watched: new WeakRef(run) }
}

describe('a run whose handle was dropped', () => {
  it('still shows its subscribers all of it, when a caller takes it up again by its id', async () => {
    const set = asking()
    const seen: RuntimeEvent[] = []
    const { runId, toolCallId, watched } = await subscribed(set, seen)
    await forget()
    expect(watched.deref()).toBeUndefined()
    const run = set.runtime.resume(runId)
    await set.waitUntilSettled(run.result)
    await set.waitUntilSettled(run.approve(toolCallId, { by: 'ada' }))
    expect(await set.waitUntilSettled(run.result)).toMatchObject({ reason: 'answered' })
    const recorded = await set.eventsOf(runId)
    expect(seen.map(({ seq }) => seq)).toEqual(recorded.map(({ seq }) => seq))
  })

  it('is forgotten once it rests, and costs nothing more', async () => {
    const set = stage({ steps: Array.from({ length: 50 }, () => ({ text: 'Done.' })) })
    const handles: WeakRef<object>[] = []
    const play = async (): Promise<void> => {
      const run = set.start()
      handles.push(new WeakRef(run), new WeakRef(run.events$))
      await set.waitUntilSettled(run.result)
    }
    for (let count = 0; count < 20; count++) await play()
    await forget()
    expect(handles.filter((handle) => handle.deref() !== undefined)).toEqual([])
  })

  it('is driven to its rest all the same', async () => {
    const set = stage({
      steps: [{ toolCalls: [{ name: 'slow', input: {} }] }, { text: 'Done.' }],
      tools: [
        testTool({
          name: 'slow',
          run: () => new Promise((resolve) => set.clock.schedule(500, () => resolve('done'))),
        }),
      ],
    })
    const runId = ((): string => set.start().id)()
    await forget()
    set.clock.advance(500)
    const events = async (): Promise<readonly string[]> => (await set.eventsOf(runId)).map(({ type }) => type)
    for (let turn = 0; turn < 1_000 && (await events()).at(-1) !== 'run_finished'; turn++)
      await Promise.resolve()
    expect((await events()).at(-1)).toBe('run_finished')
  })
})
