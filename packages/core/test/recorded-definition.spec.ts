import type { RuntimeEvent } from '@tallystick/core'
import { seededRandom, testTool } from '@tallystick/testkit'
import { expect, it } from 'vitest'
import { ofType, stage } from './stage.ts'

it('the definition of an agent is copied and frozen once, and not for each run that records it', async () => {
  const { play, agent, eventsOf } = stage({
    tools: [testTool({ name: 'look' })],
    steps: [{ text: 'One.' }, { text: 'Two.' }],
    random: seededRandom(1),
  })
  const definitionOf = (events: readonly RuntimeEvent[]) => ofType(events, 'run_started')[0]?.definition
  const [one, two] = [await play(), await play()]
  const recorded = definitionOf(await eventsOf(one.runId))
  expect(definitionOf(await eventsOf(two.runId))).toBe(recorded)
  expect(recorded).toEqual(agent.definition)
  expect([recorded, recorded?.tools, recorded?.tools[0]?.inputSchema].every(Object.isFrozen)).toBe(true)
})
