import { defineAgent, type Agent } from '@tallystick/core'
import { scriptedModel, type ScriptedStep } from '@tallystick/testkit'
import { filesTools } from '@tallystick/tools/files'

/** An agent that writes files, the same in each process. */
export function filesAgent(root: string, steps: readonly ScriptedStep[]): Agent {
  const model = scriptedModel(steps)
  return defineAgent({ name: 'clerk', instructions: '', model, tools: filesTools({ root, write: true }) })
}
