// Tools of this project, and an agent, as an MCP server over standard input and output.
import { agentTool, createRuntime, defineAgent, memoryLedger } from '@tallystick/core'
import { scriptedModel } from '@tallystick/testkit'
import { serveMcp } from '@tallystick/tools/mcp'
import { ownTools } from './own-tools.ts'

const model = scriptedModel([
  { toolCalls: [{ name: 'add', input: { a: 1, b: 2 } }] },
  { text: 'It is three.' },
])
const agent = defineAgent({
  name: 'counter',
  description: 'Adds numbers.',
  instructions: 'Add.',
  model,
  tools: [ownTools().add],
})
const runtime = createRuntime({ ledger: memoryLedger(), agents: [agent] })
const { add, slow, pay } = ownTools()
const { closed } = await serveMcp([add, slow, pay, agentTool(agent)], { name: 'own', runtime })
await closed
