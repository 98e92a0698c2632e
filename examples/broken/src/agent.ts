import { type Agent, defineAgent } from '@tallystick/core'
import { scriptedModel, testTool } from '@tallystick/testkit'

/** An agent whose limits are as good as none: a model that never stops asking is never stopped. */
export const endlessAgent: Agent = defineAgent({
  name: 'clerk',
  instructions: 'Look up.',
  model: scriptedModel([]),
  tools: [testTool({ name: 'lookup' })],
  limits: { maxTurns: 1_000_000, maxRepeats: 1_000_000 },
})
